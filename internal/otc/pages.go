// SPDX-License-Identifier: Apache-2.0

package otc

// PageSize is the most rows that all services give in one call.
const PageSize = 100

// everyPage reads page after page. The services do not agree on where the next one begins (Cloud Eye's own pages say
// both "at" and "after" the marker), so rows are kept once, by their key, and a page without a new row is the last.
// fetch gets what was read so far, and the last key; it returns a page and the total, or -1 if the service gives none.
func everyPage[T any](key func(T) string, fetch func(offset int, last string) (page []T, total int, err error)) ([]T, error) {
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
				rows = append(rows, row)
			}
		}
		offset += len(page)
		if len(rows) == before || (len(page) < PageSize && len(rows) >= total) {
			return rows, nil
		}
	}
}
