package outbound

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"time"
)

// SignWebhook sets the headers of the Standard Webhooks specification: the message's id,
// which is the same for every try, the time of this try, and a signature over both and the
// body by HMAC-SHA256.
func SignWebhook(header http.Header, key []byte, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", stamp)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
