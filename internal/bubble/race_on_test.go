//go:build race

package bubble

// raceDetector makes everything five times slower.
const raceDetector = true
