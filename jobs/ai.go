package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// AI makes the model calls of "ai" steps.
type AI struct {
	DB       *tenants.DB // has the files that models read
	Registry *llm.Registry
	Access   *Access // nil: every call is made at once, with the installation's keys
}

// Call asks the model once.
func (a AI) Call(ctx context.Context, call engine.Call) engine.Reply {
	var input engine.AIInput
	if err := json.Unmarshal(call.Input, &input); err != nil || len(input.Models) == 0 {
		return engine.Reply{Failure: &engine.Failure{Class: engine.ClassInternal, Message: "The step's stored request cannot be read."}}
	}
	req := request(input, call.Key)
	req.Live = call.Live
	if reply := a.open(ctx, call, input.Files, &req); reply != nil {
		return *reply
	}
	admission, reply := a.admit(ctx, call, req)
	if reply != nil {
		return *reply
	}
	began := time.Now()
	answer, err := admission.ask(ctx, a.Registry, req)
	admission.leave(ctx, answer, err)
	if err != nil {
		return failedReply(err, time.Since(began))
	}
	output, err := output(answer)
	if err != nil {
		return failedReply(err, time.Since(began))
	}
	return engine.Reply{Output: output, Note: note(answer), Bill: billOf(answer, time.Since(began)), Sent: answer.Sent, Received: answer.Raw}
}

// admit finds the key of a call and its room under the limits of rate. The practice model
// needs neither, and an unknown one says so where it is called.
func (a AI) admit(ctx context.Context, call engine.Call, req llm.Request) (*admission, *engine.Reply) {
	model, ok := a.Registry.Model(req.Model)
	if a.Access == nil || !ok || model.Practice {
		return nil, nil
	}
	return a.Access.admit(ctx, call, model, a.Registry.InputBound(req)+req.MaxTokens)
}

// note tells what people should know of an answer: that it was made up, and what of it
// had to be mended.
func note(answer llm.Answer) string {
	parts := answer.Repairs
	if answer.Note != "" {
		parts = append([]string{answer.Note}, parts...)
	}
	return strings.Join(parts, "; ")
}

// InputBound is the most input tokens that a model may be charged for an input, without a
// look at the files: no call is made with one that is not as large as the input says.
func (a AI) InputBound(input engine.AIInput) int64 {
	req := request(input, "")
	for _, ref := range input.Files {
		req.Files = append(req.Files, llm.File{Name: ref.Name, MediaType: ref.Type, Size: ref.Size})
	}
	return a.Registry.InputBound(req)
}

func request(input engine.AIInput, key string) llm.Request {
	r := llm.Request{
		Instructions: input.Instructions, Prompt: prompt(input), MaxTokens: int64(input.MaxTokens), Key: key, Sample: input.Sample,
	}
	if len(input.Models) > 0 {
		r.Model = input.Models[0]
	}
	r.Cache = cacheIsPriced(r.Model)
	if len(input.Answer) > 0 {
		r.Answer = &llm.Schema{Shape: llm.ShapeRecord, Fields: schemaFields(input.Answer)}
	}
	return r
}

// cacheIsPriced tells whether it is known what writing into the provider's cache costs.
// Where it is not, nothing is marked to be kept there.
func cacheIsPriced(model string) bool {
	price, err := ledger.PriceAt(model, time.Now())
	if err != nil {
		return false
	}
	_, known := price.CacheWrite.Micros()
	return known
}

// prompt is what is asked; a model that is asked anew is told what was wrong before.
func prompt(input engine.AIInput) string {
	if input.Problem == "" {
		return input.Prompt
	}
	return input.Prompt + "\n\nYour answer before could not be used: " + input.Problem +
		"\nAnswer again, completely, and only in the form that was asked for."
}

// output is what formulas read: the asked fields, or the text.
func output(answer llm.Answer) ([]byte, error) {
	if answer.Data != nil {
		return answer.Data, nil
	}
	return json.Marshal(map[string]string{"text": answer.Text})
}

func schemaFields(fields []pipeline.Field) []llm.SchemaField {
	out := make([]llm.SchemaField, 0, len(fields))
	for _, field := range fields {
		out = append(out, llm.SchemaField{Name: field.Name, Optional: !field.Required, Schema: schema(field)})
	}
	return out
}

var shapes = map[pipeline.FieldType]llm.Shape{
	pipeline.TypeText: llm.ShapeText, pipeline.TypeNumber: llm.ShapeNumber, pipeline.TypeDate: llm.ShapeDate,
	pipeline.TypeDateTime: llm.ShapeTime, pipeline.TypeYesNo: llm.ShapeYesNo, pipeline.TypeChoice: llm.ShapeChoice,
	pipeline.TypeList: llm.ShapeList, pipeline.TypeRecord: llm.ShapeRecord, pipeline.TypeMoney: llm.ShapeRecord,
}

// schema is a field as a model is asked for it; money is a record of its two parts.
func schema(field pipeline.Field) llm.Schema {
	s := llm.Schema{Shape: shapes[field.Type], Description: field.Title()}
	if field.Help != "" {
		s.Description += ": " + field.Help
	}
	switch field.Type {
	case pipeline.TypeChoice:
		for _, choice := range field.Choices {
			s.Choices = append(s.Choices, choice.Value)
		}
	case pipeline.TypeList:
		item := schema(*field.Of)
		s.Item = &item
	case pipeline.TypeRecord:
		s.Fields = schemaFields(field.Fields)
	case pipeline.TypeMoney:
		s.Fields = []llm.SchemaField{
			{Name: "amount", Schema: llm.Schema{Shape: llm.ShapeNumber, Description: "The amount"}},
			{Name: "currency", Schema: currency(field)},
		}
	}
	return s
}

func currency(field pipeline.Field) llm.Schema {
	if field.Currency != "" {
		return llm.Schema{Shape: llm.ShapeChoice, Choices: []string{field.Currency}, Description: "The currency"}
	}
	return llm.Schema{Shape: llm.ShapeText, Description: "The currency as a code of three letters, such as EUR"}
}

// retryable are the classes that may pass by themselves.
var retryable = map[llm.Class]bool{
	llm.ClassRateLimited: true, llm.ClassOverloaded: true, llm.ClassServer: true, llm.ClassTimeout: true,
	llm.ClassConnection: true, llm.ClassMalformed: true, llm.ClassEmpty: true,
}

func failedReply(err error, took time.Duration) engine.Reply {
	fault := &llm.Error{Class: llm.ClassServer, Message: "The model could not be asked.", Detail: err.Error()}
	errors.As(err, &fault)
	reply := engine.Reply{
		Failure:   &engine.Failure{Class: string(fault.Class), Message: fault.Message, Detail: fault.Detail},
		Retryable: retryable[fault.Class] && !fault.Terminal, RetryAfter: fault.RetryAfter,
		Sent: fault.Answer.Sent, Received: fault.Answer.Raw,
	}
	if fault.Dispatched {
		reply.Bill = &engine.Bill{Unknown: fault.Usage == nil, Model: fault.Answer.Model,
			RequestID: fault.Answer.RequestID, Finish: fault.Answer.Finish, Latency: took}
		if fault.Usage != nil {
			reply.Bill.Tokens = tokens(*fault.Usage)
		}
	}
	return reply
}

func billOf(answer llm.Answer, took time.Duration) *engine.Bill {
	return &engine.Bill{
		Model: answer.Model, Tokens: tokens(answer.Usage), RequestID: answer.RequestID, Finish: answer.Finish, Latency: took,
	}
}

func tokens(u llm.Usage) ledger.Tokens {
	return ledger.Tokens{
		Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, CacheWriteLong: u.CacheWriteLong,
		Output: u.Output, Reasoning: u.Reasoning, Estimated: u.Estimated,
	}
}
