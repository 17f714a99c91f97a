package web

import (
	"tollgate/app/engine"
)

// triaged answers what the steps of the template about customer mail ask a model.
var triaged = engine.Reply{Output: []byte(`{"topic":"damage","urgency":"high","order_number":"NL-48213","wish":"A new lid.","language":"English","text":"Dear Ms Lindqvist,\nwe send you a new lid today.","reply":"Dear Ms Lindqvist,\nwe send you a new lid today.","subject":"Your order"}`)}
