// SPDX-License-Identifier: Apache-2.0

package otc

// PageSize is the most rows that all services give in one call.
const PageSize = 100

// everyPage reads page after page. The services do not agree on where the next one begins (Cloud Eye's own pages say
// both "at" and "after" the marker), so rows are kept once, by their key, and a page without a new row is the last.
// fetch gets what was read so far, and the last key; it returns a page and the total, or -1 if the service gives none.
//
// Each row is converted at once: of a long list, only one page is held as the service sent it.
func everyPage[R, T any](key func(R) string, convert func(R) T, fetch func(offset int, last string) (page []R, total int, err error)) ([]T, error) {
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
		if len(rows) == before || (len(page) < PageSize && len(rows) >= total) {
			return rows, nil
		}
	}
}
