// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// peakMiB returns the largest resident memory that a process has had since its start, or since resetPeak.
func peakMiB(b *testing.B, pid int) float64 { return memoryMiB(b, pid, "VmHWM:") }

// resetPeak makes the kernel forget the largest resident memory of a process (proc(5), clear_refs).
func resetPeak(b *testing.B, pid int) {
	b.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}

// memoryMiB returns a value of /proc/PID/status, which is in KiB there (proc_pid_status(5)).
func memoryMiB(b testing.TB, pid int, name string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("needs /proc")
	}
	found := regexp.MustCompile(name + `\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		b.Fatalf("the kernel reports no %s", name)
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}

// cpuSeconds returns the CPU time that a process has used on all cores.
func cpuSeconds(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before it may contain blanks
	fields := strings.Fields(rest)
	var ticks float64
	for _, i := range []int{11, 12} { // user and system time, in hundredths of a second (proc_pid_stat(5))
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return ticks / 100
}
