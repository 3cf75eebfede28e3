package hotkey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common"
	tcerr "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common/errors"
	tchttp "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common/http"
	"github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common/profile"
)

const (
	tencentAction   = "DescribeInstanceMonitorHotKey"
	tencentVersion  = "2018-04-12"
	tencentNow      = 1       // selects the current statistics
	maxTencentReply = 1 << 20 // bounds the memory of one answer; a thousand keys are about 100 KB
)

type tencentRequest struct {
	*tchttp.BaseRequest
	InstanceId string
	SpanType   int64
}

type tencentResponse struct {
	*tchttp.BaseResponse
	Response *struct {
		Data      []*tencentHotKey
		RequestId string
	}
}

type tencentHotKey struct {
	Key   *string
	Type  *string
	Count *int64
}

// mayBeBoard returns false for keys of other Redis types than sorted sets.
func (k *tencentHotKey) mayBeBoard() bool {
	return k.Type == nil || !slices.Contains([]string{"string", "list", "set", "hash", "stream"}, strings.ToLower(*k.Type))
}

// tencentAPI makes the call. One goroutine uses it at a time.
type tencentAPI struct {
	client   *common.Client
	instance string
	keys     *tencentKeys
}

func newTencentAPI(cfg TencentConfig, keys *tencentKeys) *tencentAPI {
	endpoint, _ := url.Parse(cfg.Endpoint) // checked
	p := profile.NewClientProfile()        // without retries, which ignore the context
	p.HttpProfile.Scheme, p.HttpProfile.Endpoint = endpoint.Scheme, endpoint.Host
	p.HttpProfile.ReqTimeout = 60 // seconds; the context is shorter
	p.Language = "en-US"
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.IdleConnTimeout = 30 * time.Second
	client := common.NewCommonClient(nil, cfg.Region, p).WithHttpTransport(guard{transport})
	return &tencentAPI{client: client, instance: cfg.Instance, keys: keys}
}

func (a *tencentAPI) hotKeys(ctx context.Context) ([]*tencentHotKey, error) {
	credential, err := a.keys.get(time.Now())
	if err != nil {
		return nil, err
	}
	req := &tencentRequest{BaseRequest: &tchttp.BaseRequest{}, InstanceId: a.instance, SpanType: tencentNow}
	req.Init().WithApiInfo("redis", tencentVersion, tencentAction)
	req.SetContext(ctx)
	resp := &tencentResponse{BaseResponse: &tchttp.BaseResponse{}}
	if err := a.send(req, resp, credential); err != nil {
		call := explainTencent(err, credential)
		if call.Code == "AuthFailure" {
			a.keys.forget()
		}
		return nil, call
	}
	if resp.Response == nil { // "{}" is JSON and no error
		return nil, &CallError{"empty", AfterPause, fmt.Errorf("tencent %s answered without a Response: check for a proxy in between", tencentAction)}
	}
	return resp.Response.Data, nil
}

// send turns a panic of the SDK, as for an answer "null", into an error.
func (a *tencentAPI) send(req *tencentRequest, resp *tencentResponse, credential *common.Credential) (err error) {
	defer func() {
		if recover() != nil {
			err = tcerr.NewTencentCloudSDKError("ClientError.ParseJsonError", "", "")
		}
	}()
	return a.client.WithCredential(credential).Send(req, resp)
}

// guard bounds the bytes of an answer and refuses redirects, which would send the session token to another host.
type guard struct{ next http.RoundTripper }

var errRedirected = errors.New("the API answered with a redirect, which is refused: check the endpoint")

func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 3 {
		_ = resp.Body.Close()
		return nil, errRedirected
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxTencentReply), resp.Body}
	return resp, nil
}

// tencentCodes classes the API's errors by their code up to the first dot, which is also the metric label.
var tencentCodes = map[string]After{
	"InternalError":      AfterPause,
	"FailedOperation":    AfterPause,
	"ServiceUnavailable": AfterPause,

	"RequestLimitExceeded": AfterBackoff,
	"LimitExceeded":        AfterBackoff,
	"ResourceUnavailable":  AfterBackoff,

	"AuthFailure":           AfterOperator,
	"UnauthorizedOperation": AfterOperator,
	"InvalidParameter":      AfterOperator,
	"InvalidParameterValue": AfterOperator,
	"MissingParameter":      AfterOperator,
	"UnknownParameter":      AfterOperator,
	"ResourceNotFound":      AfterOperator,
	"UnsupportedRegion":     AfterOperator,
	"UnsupportedOperation":  AfterOperator,
	"InvalidAction":         AfterOperator,
	"NoSuchVersion":         AfterOperator,
	"OperationDenied":       AfterOperator,
}

// tencentHints names what to check, by the longest matching prefix of the code.
var tencentHints = map[string]string{
	"AuthFailure":                 "check the credentials",
	"AuthFailure.SignatureExpire": "the clock of this host is wrong: check its time synchronisation",
	"UnauthorizedOperation":       "the credentials need the right redis:" + tencentAction,
	"ResourceNotFound":            "check the instance id and its region",
	"InvalidParameter":            "check the instance id and its region",
	"UnsupportedRegion":           "check the region",
	"RequestLimitExceeded":        "20 calls a second are allowed per account and region: check for other callers",
}

const maxTencentMessage = 200 // bounds a foreign error text, in bytes

// explainTencent makes a CallError of the SDK's, with secrets redacted and without texts that quote a whole answer.
func explainTencent(err error, c *common.Credential) *CallError {
	var sdk *tcerr.TencentCloudSDKError
	if !errors.As(err, &sdk) {
		return &CallError{"client", AfterPause, fmt.Errorf("tencent %s: %s", tencentAction, redact(err.Error(), c))}
	}
	switch sdk.Code {
	case "ClientError.NetworkError", "ClientError.IOError":
		return &CallError{"network", AfterPause, fmt.Errorf("tencent %s: %s", tencentAction, redact(sdk.Message, c))}
	case "ClientError.ParseJsonError", "ClientError.HttpStatusCodeError", "ClientError.TypeError":
		return &CallError{"garbled", AfterPause, fmt.Errorf("tencent %s: the answer is not the API's (%s): check for a proxy or gateway in between",
			tencentAction, sdk.Code)}
	}
	kind, _, _ := strings.Cut(sdk.Code, ".")
	after, known := tencentCodes[kind]
	if !known {
		kind, after = "other", AfterBackoff
	}
	return &CallError{kind, after, fmt.Errorf("tencent %s: %s: %s (request %q)%s",
		tencentAction, redact(sdk.Code, c), redact(sdk.Message, c), redact(sdk.RequestId, c), tencentHint(sdk.Code))}
}

func tencentHint(code string) string {
	for part := code; part != ""; {
		if hint, ok := tencentHints[part]; ok {
			return ": " + hint
		}
		part = part[:max(strings.LastIndexByte(part, '.'), 0)]
	}
	return ""
}

// redact shortens a foreign text and removes the credentials: the API's messages contain the secret id.
func redact(text string, c *common.Credential) string {
	if c != nil {
		for _, secret := range []string{c.Token, c.SecretKey, c.SecretId} {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "***")
			}
		}
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	return text[:min(len(text), maxTencentMessage)]
}
