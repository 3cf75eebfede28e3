package adminapi

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// zoneFolders are where [time.LoadLocation] looks, after ZONEINFO and before what is in the binary.
var zoneFolders = []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"}

// tzdata tells which rules of time zones the periods of classes follow.
type tzdata struct {
	Source  string `json:"source"`  // a folder or zip file, or "binary"
	Version string `json:"version"` // of the rules, such as 2025b; of Go for those in the binary; "": unknown
}

// zoneData returns the first rules that have a zone. Those in force were read when a class was parsed.
func zoneData(folders []string) tzdata {
	if own := os.Getenv("ZONEINFO"); own != "" {
		folders = append([]string{own}, folders...)
	}
	for _, folder := range folders {
		if strings.HasSuffix(folder, ".zip") {
			if _, err := os.Stat(folder); err == nil {
				return tzdata{Source: folder}
			}
		}
		if _, err := os.Stat(filepath.Join(folder, "Asia", "Shanghai")); err == nil {
			return tzdata{folder, zoneVersion(folder)}
		}
	}
	return tzdata{"binary", runtime.Version()}
}

// zoneVersion returns the version that a folder names in one of its usual files.
func zoneVersion(folder string) string {
	for name, prefix := range map[string]string{"tzdata.zi": "# version ", "+VERSION": ""} {
		f, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			continue
		}
		line, _ := bufio.NewReader(io.LimitReader(f, 100)).ReadString('\n')
		_ = f.Close()
		if version, found := strings.CutPrefix(line, prefix); found {
			return strings.TrimSpace(version)
		}
	}
	return ""
}
