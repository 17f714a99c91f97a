package ui

import "tollgate/static"

// Icon names a symbol of the sprite static/icons.svg by its duty.
type Icon string

// The icons of the sprite.
const (
	IconAI        Icon = "ai"
	IconBranch    Icon = "branch"
	IconCalendar  Icon = "calendar"
	IconCancelled Icon = "cancelled"
	IconCap       Icon = "cap"
	IconClock     Icon = "clock"
	IconClose     Icon = "close"
	IconCopy      Icon = "copy"
	IconDone      Icon = "done"
	IconDown      Icon = "down"
	IconDownload  Icon = "download"
	IconEach      Icon = "each"
	IconEmit      Icon = "emit"
	IconEvent     Icon = "event"
	IconEye       Icon = "eye"
	IconFailed    Icon = "failed"
	IconFile      Icon = "file"
	IconHelp      Icon = "help"
	IconHome      Icon = "home"
	IconHTTP      Icon = "http"
	IconInfo      Icon = "info"
	IconKey       Icon = "key"
	IconLeft      Icon = "left"
	IconLink      Icon = "link"
	IconLock      Icon = "lock"
	IconMail      Icon = "mail"
	IconMailbox   Icon = "mailbox"
	IconMore      Icon = "more"
	IconRedo      Icon = "redo"
	IconUp        Icon = "up"
	IconParallel  Icon = "parallel"
	IconPaused    Icon = "paused"
	IconPencil    Icon = "pencil"
	IconPeople    Icon = "people"
	IconPerson    Icon = "person"
	IconPipelines Icon = "pipelines"
	IconPlay      Icon = "play"
	IconPlus      Icon = "plus"
	IconQueued    Icon = "queued"
	IconRepeat    Icon = "repeat"
	IconReply     Icon = "reply"
	IconRetry     Icon = "retry"
	IconReviews   Icon = "reviews"
	IconRight     Icon = "right"
	IconRunning   Icon = "running"
	IconRuns      Icon = "runs"
	IconSearch    Icon = "search"
	IconSet       Icon = "set"
	IconSettings  Icon = "settings"
	IconSignOut   Icon = "sign-out"
	IconSkipped   Icon = "skipped"
	IconStop      Icon = "stop"
	IconStuck     Icon = "stuck"
	IconSwap      Icon = "swap"
	IconTemplates Icon = "templates"
	IconTrash     Icon = "trash"
	IconUndo      Icon = "undo"
	IconUpload    Icon = "upload"
	IconUsage     Icon = "usage"
	IconWait      Icon = "wait"
	IconWarning   Icon = "warning"
)

// href is the address of the symbol in the sprite.
func (i Icon) href() string {
	return static.URL("icons.svg") + "#" + string(i)
}

// Kind is how one kind of step is shown: its icon and the builder's words.
type Kind struct {
	Icon  Icon
	Words string
	// Look tints the two kinds a reader looks for: AI and people. It is
	// empty for the others.
	Look Status
}

// kinds is keyed by the kind as it stands in a pipeline document.
var kinds = map[string]Kind{
	"ai":       {Icon: IconAI, Words: "Ask AI", Look: Running},
	"review":   {Icon: IconPerson, Words: "Ask a person", Look: Person},
	"branch":   {Icon: IconBranch, Words: "Decide"},
	"repeat":   {Icon: IconRepeat, Words: "Repeat until"},
	"each":     {Icon: IconEach, Words: "Do for each at once"},
	"parallel": {Icon: IconParallel, Words: "Do side by side"},
	"wait":     {Icon: IconWait, Words: "Wait until"},
	"event":    {Icon: IconEvent, Words: "Wait for an event"},
	"http":     {Icon: IconHTTP, Words: "Get or send data"},
	"email":    {Icon: IconMail, Words: "Send an e-mail"},
	"set":      {Icon: IconSet, Words: "Change data"},
	"pipeline": {Icon: IconPipelines, Words: "Run another pipeline"},
	"emit":     {Icon: IconEmit, Words: "Send an event"},
	"stop":     {Icon: IconStop, Words: "Stop"},
}

// KindOf gives the look of a kind of step by its name in the document, such as
// "ai". A name it does not know is shown as it is, with a neutral icon.
func KindOf(name string) Kind {
	if k, ok := kinds[name]; ok {
		return k
	}
	return Kind{Icon: IconQueued, Words: name}
}
