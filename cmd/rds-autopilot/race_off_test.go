//go:build !race

package main

// raceDetector makes everything five times slower.
const raceDetector = false
