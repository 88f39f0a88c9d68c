// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// peakMiB is the most memory that a process ever had resident.
func peakMiB(t testing.TB, pid int) int { return memoryKiB(t, pid, "VmHWM:") >> 10 }

// memoryKiB is a line of proc_pid_status(5).
func memoryKiB(t testing.TB, pid int, name string) int {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("needs /proc")
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(text, "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kib
		}
	}
	t.Fatalf("the kernel does not say %s", name)
	return 0
}

// cpuSeconds is what a process has used of all cores.
func cpuSeconds(t testing.TB, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold blanks
	fields := strings.Fields(rest)
	var ticks float64
	for _, i := range []int{11, 12} { // user and system time, in hundredths (proc_pid_stat(5))
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return ticks / 100
}
