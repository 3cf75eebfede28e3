package rooms

import "testing"

func TestRanks(t *testing.T) {
	file, err := Parse([]byte(`
classes:
  - {name: a, board: "a:{zone}", period: none, ranks: approx}
  - {name: b, board: "b:{zone}", period: none, ranks: exact}
  - {name: c, board: "c:{zone}", period: none}
`))
	if err != nil {
		t.Fatal(err)
	}
	tiers := file.Resolve(nil)
	if !tiers.Approximate("a:1") || tiers.Approximate("b:1") || tiers.Approximate("c:1") || tiers.Approximate("other") || (*Tiers)(nil).Approximate("a:1") {
		t.Error("another class than a has approximate ranks, or a has not")
	}
}
