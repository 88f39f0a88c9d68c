// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"net/http"
	"strconv"
	"time"
)

// updateFull makes the instance read-only or writable again. RDS umn: scaling_up_storage_space.rst, the same for all
// engines.
func (c *Cloud) updateFull(in *instance) {
	size := float64(in.VolumeGB)
	free := size - min(in.Workload.UsedGB, size)
	used := 100 * (1 - free/size)
	full, clear := used >= 97 || free < 5, used <= 87
	if in.VolumeGB >= 1000 {
		full, clear = free < 30, free >= 150
	}
	in.ReadOnly = full || in.ReadOnly && !clear
}

// stopWrites limits the growth of the used space since before, if Settings.ReadOnlyStopsWrites is set.
func (c *Cloud) stopWrites(in *instance, before float64) {
	written := in.Workload.UsedGB
	if !c.settings.ReadOnlyStopsWrites || written <= before {
		return
	}
	in.Workload.UsedGB = before
	c.updateFull(in) // the volume may have another size than before
	if in.ReadOnly {
		return
	}
	limit := min(float64(in.VolumeGB-5), float64(97*in.VolumeGB)/100)
	if in.VolumeGB >= 1000 {
		limit = float64(in.VolumeGB - 30)
	}
	in.Workload.UsedGB = min(written, max(before, limit))
	in.ReadOnly = written > in.Workload.UsedGB
}

// enlargeVolume: RDS api, scaling_up_storage_space_of_a_db_instance.rst.
func (c *Cloud) enlargeVolume(in *instance, size int, now time.Time) reply {
	if rep, refused := c.refuseByStatus(in); refused {
		return rep
	}
	switch {
	case in.ReadOnly && c.settings.RefuseEnlargeWhenFull:
		return rdsError(http.StatusConflict, "DBS.200316", "The storage of the DB instance is full.")
	case size%10 != 0 || size <= in.VolumeGB: // seen in eu-de in 2024
		return rdsError(http.StatusBadRequest, "DBS.200306",
			"The new storage space must be a multiple of 10 GB and greater than the original storage space.")
	case size > 4000:
		return rdsError(http.StatusBadRequest, "DBS.200023", "Storage space is out of range.")
	}
	id := c.startJob(in, "EnlargeVolume", strconv.Itoa(size), c.settings.EnlargeDuration, now, func(in *Instance) { in.VolumeGB = size })
	return jsonReply(http.StatusAccepted, fields{"job_id": id})
}
