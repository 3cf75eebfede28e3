package hotkey

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common"
	tcerr "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common/errors"
)

// Origins of Tencent Cloud's credentials.
const (
	TencentAuto = "auto" // the first available of env, tke and cvm
	TencentEnv  = "env"  // TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY
	TencentTKE  = "tke"  // a Kubernetes service account bound to a role (OIDC)
	TencentCVM  = "cvm"  // the role of the virtual machine
)

// How long credentials are used before they are looked up again. The SDK would log errors to the standard logger.
const (
	tkeKeysFor = 30 * time.Minute // of 2 hours
	cvmKeysFor = 2 * time.Minute  // issued with 5 minutes left or more
)

// tencentKeys caches the credentials. One goroutine uses it at a time.
type tencentKeys struct {
	kind    string
	lookup  func(kind string) (common.Provider, time.Duration, error)
	current *common.Credential
	until   time.Time // when to look them up again; zero: never
}

func newTencentKeys(kind string) (*tencentKeys, error) {
	switch kind {
	case TencentAuto, TencentEnv, TencentTKE, TencentCVM:
		return &tencentKeys{kind: kind, lookup: tencentProvider}, nil
	}
	return nil, fmt.Errorf("tencent credentials %q: want %s, %s, %s or %s", kind, TencentAuto, TencentEnv, TencentTKE, TencentCVM)
}

// get returns the credentials. Current ones stay in use while looking up new ones fails.
func (k *tencentKeys) get(now time.Time) (*common.Credential, error) {
	if k.current != nil && (k.until.IsZero() || now.Before(k.until)) {
		return k.current, nil
	}
	fresh, keep, err := k.fetch()
	if err != nil && k.current == nil {
		return nil, err
	}
	if err == nil {
		k.current = fresh
	}
	if k.until = (time.Time{}); keep > 0 {
		k.until = now.Add(keep)
	}
	return k.current, nil
}

// forget makes the next get look up new credentials.
func (k *tencentKeys) forget() { k.current, k.until = nil, time.Time{} }

func (k *tencentKeys) fetch() (*common.Credential, time.Duration, error) {
	provider, keep, err := k.lookup(k.kind)
	if err != nil {
		return nil, keep, credentialError(err)
	}
	from, err := provider.GetCredential()
	if err != nil {
		return nil, keep, credentialError(err)
	}
	id, key, token := from.GetCredential()
	if id == "" || key == "" {
		return nil, keep, credentialError(errors.New("empty id or key"))
	}
	return common.NewTokenCredential(id, key, token), keep, nil
}

// tencentProvider returns the SDK's provider and how long its credentials are used.
func tencentProvider(kind string) (common.Provider, time.Duration, error) {
	if kind == TencentAuto {
		switch {
		case os.Getenv("TENCENTCLOUD_SECRET_ID") != "":
			kind = TencentEnv
		case os.Getenv("TKE_ROLE_ARN") != "":
			kind = TencentTKE
		default:
			kind = TencentCVM
		}
	}
	switch kind {
	case TencentEnv:
		return common.DefaultEnvProvider(), 0, nil
	case TencentTKE:
		p, err := common.DefaultTkeOIDCRoleArnProvider()
		return p, tkeKeysFor, err
	}
	return common.DefaultCvmRoleProvider(), cvmKeysFor, nil
}

// credentialError explains why there are no credentials, without texts that may quote some.
func credentialError(err error) error {
	after := AfterOperator
	var sdk *tcerr.TencentCloudSDKError
	if errors.As(err, &sdk) {
		if sdk.Code == "ClientError.NetworkError" || sdk.Code == "InternalError" {
			after = AfterPause
		}
		if sdk.Code != "ClientError.CredentialError" {
			err = errors.New(sdk.Code)
		}
	}
	return &CallError{"credentials", after, fmt.Errorf("no tencent credentials: %s: set TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY, "+
		"or bind a role to the service account (TKE) or to the machine (CVM)", redact(err.Error(), nil))}
}
