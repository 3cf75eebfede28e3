package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// envAdminToken is where serve reads --admin-token from, too.
const envAdminToken = envPrefix + "ADMIN_TOKEN"

// adminClient asks the admin port of a running sidecar.
type adminClient struct {
	admin, token string
	output       string
}

func (c *adminClient) register(cmd *cobra.Command, token bool) {
	cmd.Flags().StringVar(&c.admin, "admin", DefaultAdmin, "`address` of the sidecar's admin port")
	cmd.Flags().StringVarP(&c.output, "output", "o", "text", "how to print: text or json")
	if token {
		cmd.Flags().StringVar(&c.token, "token", "", "the sidecar's admin token; better in "+envAdminToken+", which other users can't see")
	}
}

// ask returns the body of the answer, or what its problem says.
func (c *adminClient) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	if c.output != "text" && c.output != "json" { // before anything is changed
		return nil, Usagef("-o %q: want text or json", c.output)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	base := c.admin
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, Usagef("--admin: %w", err)
	}
	if c.token == "" {
		c.token = os.Getenv(envAdminToken)
	}
	if method != http.MethodGet {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w; is the sidecar running, and is --admin its admin port?", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err == nil && resp.StatusCode >= 300 {
		err = problemText(resp.Status, answer)
	}
	return answer, err
}

// problemText says what a problem+json says.
func problemText(status string, body []byte) error {
	var p struct{ Title, Detail string }
	if json.Unmarshal(body, &p) != nil || p.Title == "" {
		return fmt.Errorf("the sidecar answers %s", status)
	}
	if p.Detail == "" {
		return fmt.Errorf("the sidecar answers: %s", p.Title)
	}
	return fmt.Errorf("the sidecar answers: %s: %s", p.Title, p.Detail)
}

// print prints an answer as it came, or as text.
func (c *adminClient) print(to io.Writer, body []byte, text func(io.Writer, []byte) error) error {
	if c.output == "json" {
		_, err := to.Write(body)
		return err
	}
	return text(to, body)
}
