package web

import (
	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// Where workspaces, review links, and the pages about the installation begin.
const (
	workspacePath = "/w/:tenant"
	schemaPath    = "/schema/pipeline.json"
	draftPath     = workspacePath + "/pipelines/:pipeline/draft"
	linkPath      = "/r/:token"
	operatePath   = "/ops"
)

// routes is the whole map, by resource.
func (s *Server) routes() []route {
	return []route{
		// For machines that watch over this one, and assets.
		get("/healthz", "health.alive", anybody, s.alive),
		get("/readyz", "health.ready", anybody, s.ready),
		get("/static/*", "static", anybody, s.asset),

		get(schemaPath, "schema", anybody, s.schema),

		// The door.
		get("/", "front", anybody, s.front),
		get("/signin", "signin.show", anybody, s.signInPage),
		post("/signin", "signin.ask_code", anybody, s.askCode),
		get("/signin/code", "signin.show_code", anybody, s.codePage),
		post("/signin/code", "signin.take_code", anybody, s.takeCode),
		post("/signin/as", "signin.continue_as", onlyLocal, s.continueAs),
		post("/signout", "signout", anybody, s.leave),
		get("/workspaces", "workspaces.show", signedIn, s.workspacesPage),
		post("/workspaces", "workspaces.make", signedIn, s.makeWorkspace),

		// Inside a workspace.
		get(workspacePath, "home", may(tenants.Read), s.home),

		get(workspacePath+"/*", "lost", may(tenants.Read), s.nothingHere),

		get(workspacePath+"/settings/quotas", "quota.show", may(tenants.Read), s.quotasPage),

		// What AI costs.
		get(workspacePath+"/usage", "usage.show", may(tenants.SeeMoney), s.usagePage),
		get(workspacePath+"/usage/csv", "usage.download", may(tenants.SeeMoney), s.usageCSV),
		get(workspacePath+"/statement", "statement.show", may(tenants.SeeMoney), s.statementPage),
		get(workspacePath+"/statement/csv", "statement.download", may(tenants.SeeMoney), s.statementCSV),
		get(workspacePath+"/caps", "cap.list", may(tenants.SeeMoney), s.capsPage),
		get(workspacePath+"/caps/:place", "cap.show", may(tenants.SeeMoney), s.capPage),
		post(workspacePath+"/caps/:place", "cap.set", may(tenants.SetCaps), s.setCap),
		post(workspacePath+"/caps/:place/ask", "cap.ask", may(tenants.StartRuns), s.askCap),
		post(workspacePath+"/caps/:place/go-on", "cap.go_on", may(tenants.SetCaps), s.letGoOn),
		get(workspacePath+"/prices", "price.list", may(tenants.SeeMoney), s.pricesPage),
		get(workspacePath+"/prices/add", "price.ask", may(tenants.SetCaps), s.addPricePage),
		post(workspacePath+"/prices/add", "price.add", may(tenants.SetCaps), s.addPrice),
		post(workspacePath+"/prices/alias", "price.alias", may(tenants.SetCaps), s.setAlias),
		post(workspacePath+"/prices/:price/retire", "price.retire", may(tenants.SetCaps), s.retirePrice),
		get(workspacePath+"/settings/money", "money_rules.show", may(tenants.SeeMoney), s.rulesPage),
		post(workspacePath+"/settings/money", "money_rules.set", may(tenants.SetCaps), s.setRules),
		get(workspacePath+"/money/:request", "money_request.show", may(tenants.SeeMoney), s.requestPage),
		post(workspacePath+"/money/:request/grant", "money_request.grant", may(tenants.SetCaps), s.grantRequest),
		post(workspacePath+"/money/:request/decline", "money_request.decline", may(tenants.SetCaps), s.declineRequest),
		post(workspacePath+"/money/:request/withdraw", "money_request.withdraw", may(tenants.StartRuns), s.declineRequest),

		// Keys of the workspace's own at providers of models.
		get(workspacePath+"/settings/keys", "key.list", may(tenants.ManageWorkspace), s.keysPage),
		get(workspacePath+"/settings/keys/add", "key.ask", may(tenants.ManageWorkspace), s.addKeyPage),
		post(workspacePath+"/settings/keys/add", "key.add", may(tenants.ManageWorkspace), s.addKey),
		get(workspacePath+"/settings/keys/:key", "key.show", may(tenants.ManageWorkspace), s.keyPage),
		post(workspacePath+"/settings/keys/:key/test", "key.test", may(tenants.ManageWorkspace), s.tryKey),
		post(workspacePath+"/settings/keys/:key/limits", "key.limit", may(tenants.ManageWorkspace), s.limitKey),
		post(workspacePath+"/settings/keys/:key/rotate", "key.rotate", may(tenants.ManageWorkspace), s.rotateKey),
		post(workspacePath+"/settings/keys/:key/restore", "key.restore", may(tenants.ManageWorkspace), s.restoreKey),
		post(workspacePath+"/settings/keys/:key/end-old", "key.end_old", may(tenants.ManageWorkspace), s.endOldKey),
		get(workspacePath+"/settings/keys/:key/remove", "key.ask_remove", may(tenants.ManageWorkspace), s.removeKeyPage),
		post(workspacePath+"/settings/keys/:key/remove", "key.remove", may(tenants.ManageWorkspace), s.removeKey),

		// Secrets that steps use by name.
		get(workspacePath+"/secrets", "secret.list", may(tenants.ManageWorkspace), s.secretsPage),
		get(workspacePath+"/secrets/add", "secret.ask", may(tenants.ManageWorkspace), s.addSecretPage),
		post(workspacePath+"/secrets/add", "secret.add", may(tenants.ManageWorkspace), s.addSecret),
		get(workspacePath+"/secrets/:secret", "secret.show", may(tenants.ManageWorkspace), s.secretPage),
		post(workspacePath+"/secrets/:secret", "secret.replace", may(tenants.ManageWorkspace), s.replaceSecret),
		get(workspacePath+"/secrets/:secret/delete", "secret.ask_delete", may(tenants.ManageWorkspace), s.deleteSecretPage),
		post(workspacePath+"/secrets/:secret/delete", "secret.delete", may(tenants.ManageWorkspace), s.deleteSecret),

		// Templates.
		get(workspacePath+"/templates", "template.list", may(tenants.Read), s.templatesPage),
		get(workspacePath+"/templates/:slug", "template.show", may(tenants.Read), s.templatePage),
		get(workspacePath+"/templates/:slug/use", "template.ask_use", may(tenants.BuildPipelines), s.usePage),
		post(workspacePath+"/templates/:slug/use", "template.use", may(tenants.BuildPipelines), s.useTemplate),
		post(workspacePath+"/templates/:slug/try", "template.try", may(tenants.BuildPipelines), s.tryTemplate),

		// Pipelines, and starting their runs.
		get(workspacePath+"/pipelines", "pipeline.list", may(tenants.Read), s.pipelinesPage),
		get(workspacePath+"/pipelines/new", "pipeline.ask", may(tenants.BuildPipelines), s.newPipelinePage),
		post(workspacePath+"/pipelines/new", "pipeline.make", may(tenants.BuildPipelines), s.newPipeline),
		get(workspacePath+"/pipelines/:pipeline", "pipeline.show", may(tenants.Read), s.pipelinePage),
		get(workspacePath+"/pipelines/:pipeline/export", "pipeline.export", may(tenants.BuildPipelines), s.exportPage),
		get(workspacePath+"/pipelines/:pipeline/export/file", "pipeline.export_file", may(tenants.BuildPipelines), s.exportFile),
		get(workspacePath+"/pipelines/:pipeline/versions", "pipeline.versions", may(tenants.Read), s.versionsPage),
		get(workspacePath+"/pipelines/:pipeline/versions/compare", "version.compare", may(tenants.Read), s.comparePage),
		get(workspacePath+"/pipelines/:pipeline/versions/restore", "version.ask_restore", may(tenants.BuildPipelines), s.restorePage),
		post(workspacePath+"/pipelines/:pipeline/versions/restore", "version.restore", may(tenants.BuildPipelines), s.restoreVersion),
		get(workspacePath+"/pipelines/:pipeline/start", "run.ask", may(tenants.StartRuns), s.startPage),
		post(workspacePath+"/pipelines/:pipeline/start", "run.start", may(tenants.StartRuns), s.startRun).uploads(),
		get(workspacePath+"/pipelines/:pipeline/sheet", "pipeline.sheet", may(tenants.Read), s.sheetPage),
		get(workspacePath+"/pipelines/:pipeline/told", "pipeline.ask_told", may(tenants.BuildPipelines), s.toldPage),
		post(workspacePath+"/pipelines/:pipeline/told", "pipeline.change_told", may(tenants.BuildPipelines), s.changeTold),
		post(workspacePath+"/pipelines/:pipeline/told/renew", "pipeline.renew_hook_secret", may(tenants.BuildPipelines), s.renewHookSecret),
		post(workspacePath+"/pipelines/:pipeline/model", "pipeline.change_model", may(tenants.BuildPipelines), s.changeModel),
		post(workspacePath+"/pipelines/:pipeline/sample", "run.start_sample", may(tenants.StartRuns), s.sampleRun),

		// The draft of a pipeline, which is edited and published.
		get(draftPath, "draft.show", may(tenants.Read), s.builderPage),
		post(draftPath, "draft.save", may(tenants.BuildPipelines), s.saveSettings),
		get(draftPath+"/add", "draft.ask_add", may(tenants.Read), s.addPage),
		post(draftPath+"/add", "draft.add", may(tenants.BuildPipelines), s.addStep),
		get(draftPath+"/steps/:at", "draft.show_step", may(tenants.Read), s.stepPage),
		post(draftPath+"/steps/:at", "draft.save_step", may(tenants.BuildPipelines), s.saveStep),
		get(draftPath+"/steps/:at/move", "draft.ask_move", may(tenants.BuildPipelines), s.moveStepPage),
		post(draftPath+"/steps/:at/move", "draft.move", may(tenants.BuildPipelines), s.moveStep),
		post(draftPath+"/steps/:at/up", "draft.move_up", may(tenants.BuildPipelines), s.change("Moved “%s” up", nudge(true))),
		post(draftPath+"/steps/:at/down", "draft.move_down", may(tenants.BuildPipelines), s.change("Moved “%s” down", nudge(false))),
		post(draftPath+"/steps/:at/copy", "draft.copy", may(tenants.BuildPipelines), s.change("Copied “%s”", pipeline.Document.WithCopy)),
		post(draftPath+"/steps/:at/off", "draft.turn_off", may(tenants.BuildPipelines), s.change("Turned “%s” off", turn(true))),
		post(draftPath+"/steps/:at/on", "draft.turn_on", may(tenants.BuildPipelines), s.change("Turned “%s” on", turn(false))),
		post(draftPath+"/steps/:at/delete", "draft.delete", may(tenants.BuildPipelines), s.change("Removed “%s”", remove)),
		post(draftPath+"/undo", "draft.undo", may(tenants.BuildPipelines), s.undoEdit),
		post(draftPath+"/redo", "draft.redo", may(tenants.BuildPipelines), s.redoEdit),
		get(draftPath+"/text", "draft.text", may(tenants.Read), s.textPage),
		post(draftPath+"/text", "draft.save_text", may(tenants.BuildPipelines), s.saveText).uploads(),
		get(draftPath+"/file", "draft.file", may(tenants.Read), s.textFile),
		get(draftPath+"/changes", "draft.changes", may(tenants.Read), s.changesPage),
		post(draftPath+"/discard", "draft.discard", may(tenants.BuildPipelines), s.discardDraft),
		get(draftPath+"/publish", "draft.ask_publish", may(tenants.BuildPipelines), s.publishPage),
		post(draftPath+"/publish", "draft.publish", may(tenants.BuildPipelines), s.publishDraft),

		// Runs.
		get(workspacePath+"/runs", "run.list", may(tenants.Read), s.runsPage),
		get(workspacePath+"/runs/:run", "run.show", may(tenants.Read), s.runPage),
		get(workspacePath+"/runs/:run/steps/:step", "run.show_step", may(tenants.Read), s.runPage),
		get(workspacePath+"/runs/:run/groups/:group", "run.show_group", may(tenants.Read), s.groupPage),
		get(workspacePath+"/runs/:run/parts/:part", "run.show_part", may(tenants.Read), s.runPage),
		get(workspacePath+"/runs/:run/parts/:part/steps/:step", "run.show_part_step", may(tenants.Read), s.runPage),
		get(workspacePath+"/runs/:run/live", "run.follow", may(tenants.Read), s.liveRun).streams(),
		get(workspacePath+"/runs.csv", "run.list_file", may(tenants.Read), s.runsCSV).takesLong(),
		get(workspacePath+"/runs/:run/compare", "run.compare", may(tenants.Read), s.compareRunPage),
		get(workspacePath+"/runs/:run/download", "run.download", may(tenants.Read), s.downloadRun).takesLong(),
		get(workspacePath+"/runs/:run/share", "run.ask_share", may(tenants.StartRuns), s.sharePage),
		post(workspacePath+"/runs/:run/share", "run.share", may(tenants.StartRuns), s.shareRun),
		post(workspacePath+"/runs/:run/share/:link/end", "run.end_share", may(tenants.StartRuns), s.endShare),
		get(sharedPath, "run.look", anybody, s.sharedRun),
		get(workspacePath+"/runs/:run/values/:digest", "run.value", may(tenants.Read), s.valueFile),
		get(workspacePath+"/runs/:run/cancel", "run.ask_cancel", may(tenants.StartRuns), s.cancelPage),
		post(workspacePath+"/runs/:run/cancel", "run.cancel", may(tenants.StartRuns), s.cancelRun),
		get(workspacePath+"/runs/:run/move", "run.ask_move", may(tenants.StartRuns), s.movePage),
		post(workspacePath+"/runs/:run/move", "run.move", may(tenants.StartRuns), s.moveRun),
		post(workspacePath+"/runs/:run/pause", "run.pause", may(tenants.StartRuns), s.pauseRun),
		post(workspacePath+"/runs/:run/resume", "run.resume", may(tenants.StartRuns), s.resumeRun),
		get(workspacePath+"/runs/:run/retry", "run.ask_retry", may(tenants.StartRuns), s.retryPage),
		post(workspacePath+"/runs/:run/retry", "run.retry", may(tenants.StartRuns), s.retryRun),
		get(workspacePath+"/runs/:run/skip/:step", "step.ask_skip", may(tenants.StartRuns), s.skipPage),
		post(workspacePath+"/runs/:run/skip/:step", "step.skip", may(tenants.StartRuns), s.skipStep),
		get(workspacePath+"/runs/:run/replay/:step", "step.ask_replay", may(tenants.StartRuns), s.replayPage),
		post(workspacePath+"/runs/:run/replay/:step", "step.replay", may(tenants.StartRuns), s.replayStep),
		get(workspacePath+"/runs/:run/replays/:replay", "replay.show", may(tenants.Read), s.replayedPage),
		get(workspacePath+"/runs/:run/rerun/:step", "run.ask_rerun", may(tenants.StartRuns), s.rerunPage),
		post(workspacePath+"/runs/:run/rerun/:step", "run.rerun", may(tenants.StartRuns), s.rerunRun),
		get(workspacePath+"/runs/:run/correct/:part", "run.ask_correct", may(tenants.StartRuns), s.correctPage),
		post(workspacePath+"/runs/:run/correct/:part", "run.correct", may(tenants.StartRuns), s.correctItem),
		get(workspacePath+"/runs/:run/answer/:step", "step.ask_answer", may(tenants.StartRuns), s.answerPage),
		post(workspacePath+"/runs/:run/answer/:step", "step.answer", may(tenants.StartRuns), s.answerWait),

		// Something done to many runs.
		get(workspacePath+"/bulk", "bulk.ask", may(tenants.StartRuns), s.bulkPage),
		post(workspacePath+"/bulk", "bulk.start", may(tenants.StartRuns), s.startBulk),
		get(workspacePath+"/bulk/:bulk", "bulk.show", may(tenants.Read), s.bulkProgress),
		post(workspacePath+"/bulk/:bulk/stop", "bulk.stop", may(tenants.StartRuns), s.stopBulk),

		// Events that runs wait for.
		get(workspacePath+"/events", "event.list", may(tenants.Read), s.eventsPage),
		get(workspacePath+"/events/send", "event.ask", may(tenants.StartRuns), s.sendPage),
		post(workspacePath+"/events/send", "event.send", may(tenants.StartRuns), s.sendEvent),
		get(workspacePath+"/events/:event", "event.show", may(tenants.Read), s.eventPage),

		// Answers of other systems to runs that wait for them.
		get(callbackPath, "callback.show", anybody, s.callbackPage),
		post(callbackPath, "callback.answer", anybody, s.takeCallback).machines(engine.MaxEvent),

		// Reviews, by the link of a mail and for members.
		get(linkPath, "link.show", anybody, s.linkPage),
		post(linkPath, "link.decide", anybody, s.decideByLink),
		post(linkPath+"/renew", "link.renew", anybody, s.renewLink),
		get(workspacePath+"/reviews", "review.list", may(tenants.Read), s.inboxPage),
		get(workspacePath+"/reviews/:review", "review.show", may(tenants.Read), s.reviewPage),
		post(workspacePath+"/reviews/:review", "review.decide", may(tenants.Read), s.decideSignedIn),

		// For whoever runs the installation.
		get(operatePath, "operate", onlyOperators, s.operatePage),

		// Mail that would have gone out.
		get("/mail", "mail.list", onlyLocal, s.mailbox),
		get("/mail/:id", "mail.show", onlyLocal, s.mailPage),

		// What goes wrong on purpose.
		get(breakPath, "break.list", breaks, s.breakPage),
		post(breakPath, "break.start", breaks, s.breakStart),
		get(breakPath+"/:run", "break.show", breaks, s.breakRunPage),
		post(breakPath+"/:run/kill", "break.kill", breaks, s.breakKill),
		post(breakPath+"/:run/skip", "break.skip", breaks, s.breakSkip),
	}
}
