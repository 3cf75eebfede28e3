package reference

import (
	"bytes"
	_ "embed"
	"io"
	"strings"

	"rankcache/sidecar/resp"
)

//go:embed resp_intro.tmpl
var respIntro string

// writeRESP writes docs/RESP.md.
func writeRESP(to io.Writer) error {
	of, order := map[string][]string{}, []string{}
	for _, c := range resp.Commands() {
		if of[c.What] == nil {
			order = append(order, c.What)
		}
		of[c.What] = append(of[c.What], "`"+c.Name+"`")
	}
	var table bytes.Buffer
	tableRow(&table, "commands", "what becomes of them")
	tableRow(&table, "---", "---")
	for _, what := range order {
		tableRow(&table, strings.Join(of[what], " "), what)
	}
	_, err := io.WriteString(to, generated+strings.Replace(respIntro, "{{commands}}\n", table.String(), 1))
	return err
}
