package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	adminCall  = 10 * time.Second // bounds one request to the admin port
	writerCall = 70 * time.Second // bounds one request to the writer's port, which may change all boards of a class
	maxAnswer  = 16 << 20         // more than the admin port answers, in bytes
)

// AdminClient asks the admin port of a running sidecar, or the port of a writer.
type AdminClient struct {
	Admin  string  // address
	writer bool    // it is that of a writer
	token  *Secret // nil: of a command that changes nothing
	output *string
}

// Register registers the settings. With token they have serve's admin token.
func (c *AdminClient) Register(cmd *cobra.Command, token bool) {
	flags := cmd.Flags()
	RegisterAdmin(flags, &c.Admin)
	c.output = OutputFlag(flags, "text")
	if token {
		c.token = SecretVar(flags, "admin-token", "", "bearer token of the sidecar's admin port; visible to other users on a command line, not in the environment or a file")
	}
}

const DefaultScores = "127.0.0.1:8973" // the address of the writer's port

// RegisterWriter registers the settings of a client of a writer, and returns that of how to print.
func (c *AdminClient) RegisterWriter(cmd *cobra.Command) (output *string) {
	flags := cmd.Flags()
	c.writer = true
	flags.StringVar(&c.Admin, "scores", DefaultScores, "`address` of a writer's port")
	c.output = OutputFlag(flags, "text")
	c.token = SecretVar(flags, "write-token", "", "bearer token of the writer's port; visible to other users on a command line, not in the environment or a file")
	return c.output
}

// port returns the name of the setting of the address, and what listens there.
func (c *AdminClient) port() (flag, of string) {
	if c.writer {
		return "scores", "writer"
	}
	return "admin", "sidecar"
}

// Ask returns the body of the answer, or the problem in it as an error.
func (c *AdminClient) Ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	flag, of := c.port()
	addr, err := ParseAddress(flag, c.Admin)
	if err != nil {
		return nil, err
	}
	limit := adminCall
	if c.writer {
		limit = writerCall
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	base, client := addr.Client()
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return nil, Usagef("--%s: %w", flag, err)
	}
	if c.token != nil {
		if err := c.token.load(); err != nil {
			return nil, Usagef("%w", err)
		}
		req.Header.Set("Authorization", "Bearer "+c.token.Get())
	}
	if c.writer {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w; is the %s running, and is --%s its port?", err, of, flag)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode >= 300 {
		err = problemText(of, resp.Status, answer)
		if c.token != nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
			err = fmt.Errorf("%w; the %s has its token from its --%s (or its variable, or its file), this command from the same flag here", err, of, c.token.Flag.Name)
		}
	}
	return answer, err
}

// Showing has cmd, without arguments, print what a sidecar answers to GET of a path.
func Showing[T any](cmd *cobra.Command, path string, text func(io.Writer, *T) error) *cobra.Command {
	c := &AdminClient{}
	c.Register(cmd, false)
	cmd.Args = NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return Show(c, cmd, http.MethodGet, path, nil, text) }
	return cmd
}

// Show asks, and prints the answer as it came, or as text.
func Show[T any](c *AdminClient, cmd *cobra.Command, method, path string, body []byte, text func(io.Writer, *T) error) error {
	answer, err := c.Ask(cmd.Context(), method, path, body)
	if err == nil && *c.output == "json" {
		_, err = cmd.OutOrStdout().Write(answer)
		return err
	}
	shown := new(T)
	if err == nil && len(answer) > 0 {
		err = json.Unmarshal(answer, shown)
	}
	if err != nil {
		return err
	}
	return text(cmd.OutOrStdout(), shown)
}

// Delete has the sidecar delete what is at the path, and prints that it did; -o json prints the answer.
func (c *AdminClient) Delete(cmd *cobra.Command, path, done string) error {
	return Show(c, cmd, http.MethodDelete, path, nil, func(to io.Writer, _ *any) error {
		_, err := fmt.Fprintln(to, done)
		return err
	})
}

// ErrUnknownPath is the answer of a process that has nothing under the path.
var ErrUnknownPath = errors.New("the process answers: no such resource; is it the right port, of a process of this version?")

func problemText(of, status string, body []byte) error {
	var p struct{ Code, Title, Detail string }
	if json.Unmarshal(body, &p) != nil || p.Title == "" {
		return fmt.Errorf("the %s answers %s", of, status)
	}
	if p.Code == "unknown_path" {
		return ErrUnknownPath
	}
	if p.Detail == "" {
		return fmt.Errorf("the %s answers: %s", of, p.Title)
	}
	return fmt.Errorf("the %s answers: %s: %s", of, p.Title, p.Detail)
}

const DefaultAdmin = "127.0.0.1:8971" // the address of the sidecar's admin port

// RegisterAdmin registers the address of the admin port, of serve and its clients.
func RegisterAdmin(flags *pflag.FlagSet, admin *string) {
	flags.StringVar(admin, "admin", DefaultAdmin, "`address` of the sidecar's admin port; keep it on loopback")
}
