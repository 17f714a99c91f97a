// Package ui is how pages of the product look: components over plain values.
//
// # How to compose a page
//
// Every exported struct with a Render method is a component. Fill in its
// fields and put it on a page with @; a component that stands around others
// needs parentheses:
//
//	templ Runs(p RunsPage) {
//		@(ui.Layout{Title: "Runs", Workspace: p.Workspace, Nav: p.Nav, User: p.User, Zone: p.Zone}) {
//			@ui.PageHead{
//				Title:   "Runs",
//				Lead:    ui.Sentence{ui.Strong("2 runs"), ui.Plain(" wait for you.")},
//				Actions: ui.Actions{ui.Button{Text: "Start a run", Kind: ui.Primary, Icon: ui.IconPlus, Href: p.Start}},
//			}
//			@(ui.Section{ID: "open", Title: "Open"}) {
//				@ui.Table{Caption: p.Caption, Columns: p.Columns, Rows: p.Rows}
//			}
//		}
//	}
//
// Package gallery shows each component in each state, and whole pages, and is
// the quickest place to see what there is.
//
//   - Frame: [Layout] inside a workspace, [PlainLayout] for pages that stand
//     alone. [PageHead] opens the page, [Section] parts it, [Columns],
//     [Overview] and [WithPanel] put things side by side, [Stack] one under the
//     other, [Raised] lifts the one thing to act on. [Lost] is the body of an
//     error page, [Alone] of a single short form, [ReviewPage] of a question.
//   - Acting: [Button], [PostButton], [Actions], [Form], [Inline], [Field],
//     [ErrorSummary], [Decision], [Deadline], [Aside].
//   - Listing: [Rows], [Tasks], [Table], [Pairs], [Facts], [Tiles], [Feature],
//     [Outline], [Chain], [Filters], [Pager], [More], [Empty].
//   - Building: [Build], [DraftBar], [StepTree], [PartHead], [KindList], [Grid],
//     [InsertData], [Reads], [Checks], [Diagram].
//   - State: [Badge], [Notice], [LiveDot], [LiveRegion], [Meter], [Progress],
//     [Timeline], [Split].
//   - Values: [Code], [Value], [Said], [FileTag], [ByAI], [Panel] with [Fold].
//   - Words: [Dollars], [Money], [Count], [Duration], [When] and the rest of
//     words.go and when.go. All are pure; times come in, with now and the zone.
//
// Between components a page may use plain elements with the classes "prose"
// (running text), "small", "meta" (small and quiet), "muted", "figure" (numbers
// that must not break), "big" (one large number), "line" (things on one line)
// and "unseen" (for screen readers only). Everything else of the stylesheet
// belongs to a component.
//
// # Forms
//
// A form that failed is shown again with what was typed: set Value and Error
// of its fields, put an [ErrorSummary] of [Faults] above it, begin the title
// of the page with "Error: ". Tokens and one-time keys go into Form.Hidden.
//
// # Live pages
//
// Set Layout.Live, put what changes into a [LiveRegion] and a [LiveDot] beside
// the head. The stream sends [LiveRegion.Content] rendered anew, one "data:"
// line per line of HTML, and a last event named "end". Rows keep their ids, so
// morphing finds them. Without a script the dot is a link that loads the page
// again, and what it shows is right after every reload.
//
// # Invariants
//
//   - Components know no other room: strings, numbers and times only.
//   - Text from outside is escaped by templ, cleaned by [Clean] and isolated
//     in a <bdi>, so it can turn neither the markup nor the words around it.
//     Words of the product go in as [Plain].
//   - No style attribute, no inline script: the policy of the product forbids
//     both. Positions in figures are attributes of SVG elements.
//   - A status is an icon, a word and a pattern before it is a colour.
//   - Everything works without a script.
//
// Reading order: text.templ, status.templ, layout.templ, head.templ, then what
// you need. The *_templ.go files are generated: go tool templ generate.
package ui
