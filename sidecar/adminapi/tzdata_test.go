package adminapi

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestZoneData(t *testing.T) {
	t.Setenv("ZONEINFO", "")
	write := func(files map[string]string) string {
		folder := t.TempDir()
		for name, text := range files {
			path := filepath.Join(folder, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return folder
	}
	const zone = "Asia/Shanghai"
	debian := write(map[string]string{zone: "TZif2", "tzdata.zi": "# version 2025b\n# ddeps backzone\n"})
	apple := write(map[string]string{zone: "TZif2", "+VERSION": "2024a\n"})
	bare := write(map[string]string{zone: "TZif2", "tzdata.zi": "R d 1916 o"})
	empty := t.TempDir()
	zip := filepath.Join(write(map[string]string{"zones.zip": "PK"}), "zones.zip")
	for _, c := range []struct {
		env     string
		folders []string
		want    tzdata
	}{
		{"", []string{empty, debian, apple}, tzdata{debian, "2025b"}},
		{"", []string{apple}, tzdata{apple, "2024a"}},
		{"", []string{bare}, tzdata{bare, ""}},
		{"", []string{empty}, tzdata{"binary", runtime.Version()}},
		{apple, []string{debian}, tzdata{apple, "2024a"}},
		{zip, []string{debian}, tzdata{zip, ""}},
		{filepath.Join(empty, "no.zip"), []string{debian}, tzdata{debian, "2025b"}},
	} {
		t.Setenv("ZONEINFO", c.env)
		if got := zoneData(c.folders); got != c.want {
			t.Errorf("ZONEINFO %q, %v: %+v, want %+v", c.env, c.folders, got, c.want)
		}
	}
}
