//go:build !race

package week

// raceDetector makes everything five times slower.
const raceDetector = false
