package profile

import "testing"

func TestMeasure(t *testing.T) {
	f, err := Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", f)
}
