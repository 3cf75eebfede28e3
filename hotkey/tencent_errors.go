package hotkey

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common"
	tcerr "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common/errors"
)

// tencentCodes gives the class of the API's errors, by the part of the code before
// the first dot, which is also the metric label.
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

// maxTencentMessage bounds a foreign error text, in bytes.
const maxTencentMessage = 200

// explainTencent turns an error of the SDK into a CallError, without texts that quote
// a whole answer and with secrets redacted.
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

// redact shortens a foreign text and removes the credentials: the API's messages
// contain the secret id.
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
