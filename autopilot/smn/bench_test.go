package smn

import "testing"

func BenchmarkParseAlarm(b *testing.B) {
	e, err := NewParser().Envelope(example(b, "notification_alarm.json"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ParseAlarm(e.Message); err != nil {
			b.Fatal(err)
		}
	}
}
func BenchmarkEnvelope(b *testing.B) {
	p := NewParser()
	body := example(b, "notification_alarm.json")
	for b.Loop() {
		if _, err := p.Envelope(body); err != nil {
			b.Fatal(err)
		}
	}
}
