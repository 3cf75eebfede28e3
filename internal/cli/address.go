package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// address is where a listener is. Every setting that names one takes host:port, :port, http://host:port or unix:/path.
// Of a client it may also be an https:// URL, and have a path.
type address struct {
	scheme string // http or https; "" on a Unix socket
	at     string // host:port, or the path of the socket
	path   string // of a URL, without the slash at its end
}

// ParseAddress reads the value of a flag.
func ParseAddress(flag, text string) (address, error) {
	a, err := splitAddress(text)
	if err == nil && a.scheme != "" {
		err = checkHostPort(a.at)
	}
	if err != nil {
		return a, Usagef("--%s %q: %w: want host:port, :port, http://host:port or unix:/path", flag, text, err)
	}
	return a, nil
}

func splitAddress(text string) (address, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path = strings.TrimPrefix(path, "//") // as in a URL
		if path == "" {
			return address{}, fmt.Errorf("no path")
		}
		return address{at: path}, nil
	}
	if !strings.Contains(text, "://") {
		return address{scheme: "http", at: text}, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return address{}, fmt.Errorf("not such a URL")
	}
	at := u.Host
	if u.Port() == "" {
		at = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return address{u.Scheme, at, strings.TrimSuffix(u.Path, "/")}, nil
}

func checkHostPort(at string) error {
	_, port, err := net.SplitHostPort(at)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return err
}

func (a address) listenOn() (string, error) {
	switch {
	case a.scheme == "":
		return unixPrefix + a.at, nil
	case a.scheme == "https" || a.path != "":
		return "", fmt.Errorf("a listener has neither https nor a path")
	}
	return a.at, nil
}

// Client returns the base URL of the server at the address, and a client that reaches it.
func (a address) Client() (base string, client *http.Client) {
	if a.scheme == "" {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", a.at)
		}
		return "http://localhost", &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	}
	host, port, _ := net.SplitHostPort(a.at) // checked by ParseAddress
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return a.scheme + "://" + net.JoinHostPort(host, port) + a.path, http.DefaultClient
}
