// Package webhook receives what SMN posts: it verifies a message, finds the database it is about, stores the signal on
// that object, and only then acknowledges. It is on the internet; its order of checks is the cheapest and most closed
// first.
//
// It must not know decisions or the cloud's APIs: with the cloud down it still stores and acknowledges.
package webhook
