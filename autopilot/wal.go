// SPDX-License-Identifier: Apache-2.0

package autopilot

import "fmt"

// EnginePostgreSQL is the only engine of which Cloud Eye has a gauge of WAL.
const EnginePostgreSQL = "PostgreSQL"

// walShare is the share of the used space from which WAL is named: a fifth. Less is usual under load.
const walShare = 0.2

// WAL is what Cloud Eye measures of the write-ahead log of a PostgreSQL instance.
type WAL struct {
	GB            float64
	InactiveSlots int // logical replication slots that nobody reads
}

// Describe returns a sentence if WAL is at least a fifth of the used space in GB, else an empty text.
func (w WAL) Describe(usedGB float64) string {
	if usedGB <= 0 || w.GB < walShare*usedGB || w.GB > usedGB {
		return ""
	}
	keeps := ""
	switch {
	case w.InactiveSlots == 1:
		keeps = ", and 1 inactive logical replication slot keeps WAL"
	case w.InactiveSlots > 1:
		keeps = fmt.Sprintf(", and %d inactive logical replication slots keep WAL", w.InactiveSlots)
	}
	return fmt.Sprintf("%.0f of the %.0f GB in use are WAL%s: growing does not fix this", w.GB, usedGB, keeps)
}
