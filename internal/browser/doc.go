// Package browser has tests only: the status page and the page of the sandbox in a real headless Chromium. No error in its
// console, no request to another host, the keyboard, both themes, and no serious fault for people who need help to read.
//
// `make test-browser` runs it where Chromium is installed, and leaves pictures in .cache/screenshots to be looked at.
package browser
