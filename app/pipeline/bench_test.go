package pipeline

import "testing"

func BenchmarkCheck(b *testing.B) {
	d := Templates()[0].Document
	for b.Loop() {
		Check(d)
	}
}

func BenchmarkCompile(b *testing.B) {
	d := Templates()[0].Document
	for b.Loop() {
		if _, err := compile(d); err != nil {
			b.Fatal(err)
		}
	}
}
