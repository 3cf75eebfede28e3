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
	tencentAction  = "DescribeInstanceMonitorHotKey"
	tencentVersion = "2018-04-12"
	// tencentNow selects the current statistics.
	tencentNow = 1
	// maxTencentReply bounds the memory of one answer; a thousand keys are
	// about 100 KB.
	maxTencentReply = 1 << 20
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

// hotKeys returns the instance's current hot keys.
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

// send turns a panic of the SDK, such as for an answer "null", into an error: a
// gateway's unexpected answer must not end the process.
func (a *tencentAPI) send(req *tencentRequest, resp *tencentResponse, credential *common.Credential) (err error) {
	defer func() {
		if recover() != nil {
			err = tcerr.NewTencentCloudSDKError("ClientError.ParseJsonError", "", "")
		}
	}()
	return a.client.WithCredential(credential).Send(req, resp)
}

// guard bounds the bytes of an answer and refuses redirects, which would send the
// session token to another host.
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
