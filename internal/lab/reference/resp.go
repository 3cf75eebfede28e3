package reference

import (
	"bytes"
	_ "embed"
	"io"
	"strings"

	"rankcache/sidecar/resp"
)

//go:embed resp_intro.md
var respIntro string

// writeRESP writes docs/RESP.md.
func writeRESP(to io.Writer) error {
	var table bytes.Buffer
	tableRow(&table, "command", "what becomes of it")
	tableRow(&table, "---", "---")
	for _, c := range resp.Commands() {
		tableRow(&table, "`"+c.Name+"`", c.What)
	}
	_, err := io.WriteString(to, generated+strings.Replace(respIntro, "{{commands}}\n", table.String(), 1))
	return err
}
