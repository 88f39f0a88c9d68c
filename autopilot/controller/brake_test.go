package controller

import (
	"testing"
	"time"
)

func TestBrake(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	key := func(name string) Key { return Key{"ns", name} }
	b := brake{held: map[Key]time.Time{}}
	none := map[Key]bool{}
	for _, asks := range []string{"x", "y"} {
		if b.full(key(asks), 1, none, now) {
			t.Error("who only asks holds a place")
		}
	}
	if !b.take(key("a"), 2, none, now) || !b.take(key("b"), 2, none, now) {
		t.Fatal("two places, and none was given")
	}
	if b.take(key("c"), 2, none, now) || !b.full(key("c"), 2, none, now) || b.full(key("a"), 2, none, now) {
		t.Error("a third place of two, while two rounds decide")
	}
	if !b.take(key("a"), 2, none, now) {
		t.Error("who holds a place was refused it")
	}
	b.release(key("a"), false, now) // it did not act
	if !b.take(key("c"), 2, none, now) {
		t.Error("a place that was given back is not free")
	}
	b.release(key("b"), true, now) // its intent is stored, and the cache does not know yet
	if b.take(key("d"), 2, none, now.Add(time.Second)) {
		t.Error("a stored intent counts for nothing until the cache knows it")
	}
	if b.take(key("d"), 2, map[Key]bool{key("b"): true}, now.Add(time.Second)) {
		t.Error("an intent that the cache knows counts for nothing")
	}
	b.release(key("c"), false, now)
	if !b.take(key("d"), 2, map[Key]bool{key("b"): true}, now.Add(time.Second)) {
		t.Error("one place is free")
	}
	if b.take(key("e"), 2, map[Key]bool{key("x"): true, key("y"): true}, now) {
		t.Error("two change elsewhere")
	}
}
