// SPDX-License-Identifier: Apache-2.0

package otc

// pageSize is how many rows all services return in one request at most.
const pageSize = 100

// everyPage reads all pages of a list. The services do not agree on where the next page begins: Cloud Eye's documents
// say both "at" and "after" the marker. So it keeps each key once, and a page without a new row is the last. fetch is
// called with the number of rows so far and the last key. It returns a page and the total, or -1 if the service sends
// no total.
//
// everyPage converts each page at once, so that it holds only one page of a long list in the SDK's types.
func everyPage[R, T any](key func(R) string, convert func(R) T,
	fetch func(offset int, last string) (page []R, total int, err error)) ([]T, error) {
	var rows []T
	seen := map[string]bool{}
	last, offset := "", 0
	for {
		page, total, err := fetch(offset, last)
		if err != nil {
			return nil, err
		}
		before := len(rows)
		for _, row := range page {
			last = key(row)
			if !seen[last] {
				seen[last] = true
				rows = append(rows, convert(row))
			}
		}
		offset += len(page)
		if len(rows) == before || (len(page) < pageSize && len(rows) >= total) {
			return rows, nil
		}
	}
}
