package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

func TestOwnWritesStandInForACacheThatIsBehind(t *testing.T) {
	of := func(version string, gb int32) *otcv1.Rds {
		return &otcv1.Rds{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, UID: "uid"}, Spec: otcv1.Spec{VolumeSize: gb}}
	}
	var w ownWrites[*otcv1.Rds]
	k := Key{"ns", "db"}
	w.keep(k, of("100", 110))
	if got := w.newest(k, of("99", 100)); got.Spec.VolumeSize != 110 {
		t.Errorf("the cache of before counts: %+v", got)
	}
	if got := w.newest(k, of("101", 100)); got.Spec.VolumeSize != 100 || len(w.last) > 0 {
		t.Errorf("somebody's newer write does not count: %+v", got)
	}
	w.keep(k, of("100", 110))
	another := of("99", 50)
	another.UID = "another"
	if got := w.newest(k, another); got.Spec.VolumeSize != 50 {
		t.Errorf("the write to an object of before counts for another one of its name: %+v", got)
	}
}
