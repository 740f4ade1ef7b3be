"""The museum: bugs that users of other job queues have met, each with the change that makes it ours.

Numbers are those of our catalogue of such bugs; what is missing belongs to what we do not have yet.
"""

# ruff: noqa: E501  the texts are those of our files

from __future__ import annotations

from tests.mutants.mutant import Change, Mutant

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "log-raises",
        "a filter of the app that raises keeps a finished job from being settled, and its slot for ever",
        "tests/worker/test_logs.py::test_a_filter_that_raises_costs_neither_an_outcome_nor_a_slot",
        [
            Change("db/safe_logger.py", "except Exception as error:", "except MemoryError as error:"),
            Change(
                "worker/run.py",
                "            self._finished(row, outcome)  # before anything is said of it: that is the app's code, too\n"
                "            self._report(row, outcome, took, attempt.error)\n",
                "            self._report(row, outcome, took, attempt.error)\n            self._finished(row, outcome)\n",
            ),
        ],
    ),
    Mutant(
        "leave-waits-for-the-refused",
        "a worker that stops waits for what PostgreSQL refuses, and leaves its jobs to be rescued with a crash",
        "tests/worker/test_leaving.py::test_what_postgresql_refuses_goes_back_without_a_crash_and_its_worker_leaves",
        [
            Change(
                "worker/incarnation.py",
                "flush(patience=_APART_WITHIN, until=until)",
                "flush(patience=_LEAVE_WITHIN, until=until + _LEAVE_WITHIN)",
            ),
        ],
    ),
    Mutant(
        "clock-forward-at-start",
        "a worker that starts just after the clock was put forward rescues everything from the living",
        "tests/worker/test_clock_steps.py"
        "::test_a_worker_that_starts_rescues_nobody_where_the_clock_may_just_have_been_put_forward",
        [Change("worker/registration.py", "        self._lease.began(unwatched)\n", "")],
    ),
    Mutant(
        "threads-of-earlier-incarnations",
        "the threads that a lost lease has left behind are not counted, and as many are started beside them",
        "tests/worker/test_runner.py"
        "::test_threads_that_one_incarnation_has_left_behind_are_stuck_in_the_next_one_and_take_its_room",
        [Change("worker/threads.py", "self.size - self._inherited)", "self.size)")],
    ),
    Mutant(
        "fence-in-a-block",
        "a fence that is asked for inside of a REPEATABLE READ block fails its end in every attempt",
        "tests/worker/test_fence.py::test_it_is_asked_for_before_the_block_that_ends_the_job",
        [Change("worker/attempt.py", "if self._row.token in self._resources.open:", "if False:")],
    ),
    Mutant(
        "log-extra",
        "a record factory that has set a name of ours makes every record about a job a KeyError",
        "tests/worker/test_logs.py::test_the_fields_of_a_job_win_over_those_of_a_record_factory",
        [
            Change("db/safe_logger.py", "exc_info), function)", "exc_info), function, extra)"),
            Change("db/safe_logger.py", "            vars(record).update(extra or {})\n", ""),
        ],
    ),
    Mutant(
        "outcome-in-a-group",
        "a Snooze that a task of a TaskGroup raises is a failure",
        "tests/worker/test_outcomes.py::test_a_snooze_in_a_group_of_groups_is_understood",
        [Change("worker/call.py", "row, error = attempt.row, _meant(error)", "row = attempt.row")],
    ),
    Mutant(
        "outcome-that-is-returned",
        "a handler that returns a Snooze instead of raising it fails for good, as its result cannot be stored",
        "tests/worker/test_outcomes.py::test_what_ends_an_attempt_may_be_returned_instead_of_raised",
        [
            Change(
                "worker/call.py",
                "        if isinstance(result, Interruption):  # `",
                "        if result is Interruption:  # `",
            )
        ],
    ),
    Mutant(
        "operate-empty-filter",
        "a filter that is empty by mistake deletes every job",
        "tests/test_operate.py::test_an_empty_filter_changes_nothing_unless_every_job_is_meant",
        [Change("model/verb.py", "if asked.is_empty:", "if asked is None:")],
    ),
    Mutant(
        "flow-handed-back-is-false",
        "a worker that is stopped while it undoes ends the workflow, and the other undos never run",
        "tests/workflow/test_undo_to_its_end.py::test_what_a_stopped_worker_has_not_undone_the_next_one_undoes",
        [
            Change(
                "workflow/attempt.py",
                "    stopped = _stopped(execution)\n    return HandedBack() if stopped is None else stopped\n",
                "    stopped = _stopped(execution)\n    return failure.outcome([]) if isinstance(stopped, HandedBack) else stopped or HandedBack()\n",
            ),
        ],
    ),
    Mutant(
        "flow-crashes-since-the-park",
        "a workflow that gets on fails as poison, for crashes are counted since it last parked",
        "tests/workflow/test_progress_counts.py::test_a_step_that_is_recorded_takes_the_crashes_before_it_off",
        [Change("store/sql/step_record.sql", "has_failed and kind", "false and kind")],
    ),
    Mutant(
        "flow-error-of-all",
        "every workflow fails of StepFailed, so that no filter finds those whose bank was down",
        "tests/workflow/test_faults.py::test_callers_and_filters_see_the_error_that_it_failed_of",
        [Change("workflow/attempt.py", "if not isinstance(error, StepFailed | ChildFailed):", "if True:")],
    ),
    Mutant(
        "flow-cut-off-again",
        "a step that a failed sibling has cut off begins again in every replay",
        "tests/workflow/test_cut_off.py::test_a_step_that_a_failed_sibling_cuts_off_does_not_run_again",
        [Change("workflow/step_run.py", "        await _remember_cut(execution, work, step)\n", "")],
    ),
    Mutant(
        "flow-retry-keeps-the-cut",
        "a workflow that is retried waits for ever for a step that the failure had cut off",
        "tests/workflow/test_cut_off.py::test_what_was_cut_off_runs_again_when_the_workflow_is_retried_from_the_failure",
        [Change("store/migrations/0001_jobs.sql", "(state = 'closed' and kind in ('step', 'transaction'))", "false")],
    ),
    Mutant(
        "flow-cause-of-the-first-run",
        "a failed step has a cause in the first run and none in a replay, and the code decides by it",
        "tests/workflow/test_cut_off.py::test_the_cause_of_a_failed_step_is_the_same_in_every_attempt",
        [
            Change(
                "workflow/step_run.py",
                "                failed = _failed(record.key, record.error, record.attempts)\n",
                "                raise _failed(record.key, record.error, record.attempts) from error\n",
            )
        ],
    ),
    Mutant(
        "flow-loser-stays-open",
        "what lost a ctx.any stays open: old reminders wake the workflow, and an approval is asked for many times",
        "tests/workflow/test_waits_in_order.py::test_what_lost_is_closed_and_wakes_and_asks_nobody_for_nothing",
        [Change("workflow/execution.py", "records += self.history.closes(", "self.history.closes(")],
    ),
    Mutant(
        "flow-late-signal",
        "a signal that came after its time-out is in time if no worker had looked",
        "tests/workflow/test_waits_in_order.py::test_a_signal_after_its_deadline_is_late_though_nobody_looked_before",
        [Change("workflow/waits.py", "deadline is None or signal.sent_at <= deadline", "True")],
    ),
    Mutant(
        "flow-order-of-names",
        "signals of several names are taken in the order of the code, and not in that in which they came",
        "tests/workflow/test_waits_in_order.py::test_signals_of_several_names_are_taken_in_the_order_in_which_they_came",
        [Change("workflow/waits.py", "_, index = min(came)", "_, index = came[0]")],
    ),
    Mutant(
        "flow-fault-fails",
        "an error that nobody declared ends a live workflow for good, and undoes it",
        "tests/workflow/test_faults.py::test_any_other_error_blocks_it_and_undoes_nothing",
        [Change("workflow/attempt.py", "case _ if _is_business(", "case _ if True or _is_business(")],
    ),
    Mutant(
        "flow-fault-early-error",
        "an error of new code where the record goes on is taken for the workflow's own, and what was done is forgotten",
        "tests/workflow/test_faults.py::test_an_error_where_the_record_goes_on_is_of_changed_code",
        [Change("workflow/attempt.py", "return _past_its_record(execution, does) or ", "return ")],
    ),
    Mutant(
        "flow-fault-around-forgets-undo",
        "a workflow is cancelled without its undo because what is around its code fails just then",
        "tests/workflow/test_faults.py::test_one_that_is_cancelled_is_undone_though_what_is_around_it_fails_meanwhile",
        [Change("workflow/attempt.py", "if isinstance(verdict, Blocked) and not execution.has_ended:", "if False:")],
    ),
    Mutant(
        "flow-fault-step-again",
        "a step whose result does not fit its annotation runs again in each attempt, or fails the workflow",
        "tests/workflow/test_faults.py::test_what_a_step_returned_is_kept_for_the_annotation_that_it_fits",
        [Change("workflow/step_run.py", "if (text := _refused_by_its_type(work, value)) is None:", "if True:")],
    ),
    Mutant(
        "flow-fault-never-again",
        "what a fault has blocked is never tried again without a deploy",
        "tests/workflow/test_faults.py::test_a_worker_makes_it_ready_again_when_its_time_has_come_and_not_before",
        [Change("store/sql/workflow_unblock.sql", "        and job.run_at <= rowlock.now()\n", "        and false\n")],
    ),
    Mutant(
        "flow-fault-pause-goes-on",
        "a workflow that got on waits a quarter of an hour after its next fault, as if it had not",
        "tests/workflow/test_faults.py::test_it_is_tried_again_after_twice_as_long_each_time_until_it_gets_on",
        [Change("workflow/attempt.py", "failures=0 if execution.has_progressed else None", "failures=None")],
    ),
    Mutant(
        "flow-fork-remembers-the-undone",
        "a fork of a workflow that was undone takes what was undone for done",
        "tests/workflow/test_progress_counts.py::test_a_fork_of_what_was_undone_begins_anew",
        [Change("store/sql/workflow_fork.sql", "other.kind = 'undo' and", "other.kind = 'failure' and false and")],
    ),
    Mutant(
        "flow-refused-by-the-gone",
        "what an old worker has refused no running worker takes up when that has gone",
        "tests/workflow/test_versions.py::test_what_an_old_worker_refused_a_running_one_takes_up_once_when_that_has_gone",
        [
            Change(
                "store/sql/job_take_up.sql",
                "sort.refuser <> all(array(\n                "
                "select peer.id from rowlock.workers as peer where peer.started_at >= ",
                "sort.refuser = any(array(\n                "
                "select peer.id from rowlock.workers as peer where peer.started_at < ",
            ),
        ],
    ),
    Mutant(
        "flow-cancel-stops-undo",
        "a cancel that is being carried out stops its own undo, again and again",
        "tests/workflow/test_undo_to_its_end.py::test_a_cancel_does_not_stop_an_undo",
        [
            Change("worker/run.py", " and not attempt.row.cancelling:", ":"),
            Change("worker/run.py", "if not attempt.in_thread and not attempt.undoing:", "if not attempt.in_thread:"),
        ],
    ),
    Mutant(
        "flow-cancel-undoes-without-replay",
        "a workflow that is cancelled in the midst of its code undoes only what that had come to",
        "tests/workflow/test_undo_to_its_end.py::test_one_that_is_cancelled_outside_of_its_steps_undoes_all_that_it_remembers",
        [
            Change(
                "workflow/attempt.py",
                " or (execution.held.cancel_requested and not row.cancelling):\n        return HandedBack()\n    if row.cancelling or row.expired:",
                ":\n        return HandedBack()\n    if row.cancelling or row.expired or execution.held.cancel_requested:",
            ),
        ],
    ),
    Mutant(
        "M1",
        "a rescue goes by the job's id alone and overwrites what somebody else does with it",
        "tests/store/test_rescue.py::test_a_worker_that_has_a_fresh_lease_loses_nothing",
        [
            Change(
                "store/sql/job_rescue.sql",
                "            and job.token = orphan.token\n            and (\n                job.worker = any(array(select id from dead))\n                or not exists (select from rowlock.workers as worker where worker.id = job.worker)\n            )\n",
                "            and job.state = 'running'\n",
            ),
        ],
    ),
    Mutant(
        "D1c",
        "a job that only waits for a slot of its worker is shown as one that runs",
        "tests/dashboard/test_workers.py::test_a_job_that_waits_for_a_slot_of_its_worker_is_told_from_one_that_runs",
        [Change("store/sql/job_underway.sql", "job.begun is true as begun", "true as begun")],
    ),
    Mutant(
        "D1d",
        "a chart is in the reader's zone where all other times are in UTC",
        "tests/dashboard/test_browser.py::test_times_are_the_readers_or_utc_if_they_say_so",
        [Change("dashboard/static/times.js", "{ ...short, timeZone: zone() }", "short")],
    ),
    Mutant(
        "D1e",
        "a retry of 55 jobs is 55 lines of the audit",
        "tests/dashboard/test_audit.py::test_a_verb_over_many_jobs_is_one_line_that_unfolds",
        [Change("dashboard/pages/audit.py", "return said == meant and", "return False and")],
    ),
    Mutant(
        "D1f",
        "marks of an axis are rounded, and neighbours read the same",
        "tests/dashboard/test_gantt.py::test_marks_of_an_axis_are_all_different",
        [Change("dashboard/drawings/gantt.py", "_mark(count * step))", "span(timedelta(seconds=count * step)))")],
    ),
    Mutant(
        "D1g",
        "a queue with a quote in its name stops the updates of every open overview",
        "tests/dashboard/test_overview.py::test_the_id_of_an_element_is_plain_whatever_a_name_holds",
        [Change("dashboard/templates/overview.html", "notice.name | ref", "notice.name | replace(' ', '-')")],
    ),
    # Found by an audit of the dashboard, the doctor and the bounds on who may do what.
    Mutant(
        "B1",
        "who promises a body and sends none counts as one who asks, and takes the room of all others",
        "tests/dashboard/test_security_server.py::test_who_keeps_back_the_body_that_was_promised_leaves_room_too",
        [Change("dashboard/http/serve.py", "not is_asked or self.conn.their_state is h11.SEND_BODY", "not is_asked")],
    ),
    Mutant(
        "B2",
        "a migration waits without end, and says nothing, for whoever has taken its advisory lock",
        "tests/db/test_migrating.py::test_nobody_keeps_a_migration_waiting_without_end_by_an_advisory_lock",
        [Change("db/migrate.py", "select set_config('lock_timeout', %s, true)", "select set_config('a.b', %s, true)")],
    ),
    Mutant(
        "B4",
        "while the database is silent, so is the stream, and the page looks live",
        "tests/dashboard/test_security_feed.py::test_who_watches_hears_that_nothing_comes_from_a_database_that_is_silent",
        [Change("dashboard/http/feed.py", "asyncio.wait([seeing], timeout=_SILENCE)", "asyncio.wait([seeing])")],
    ),
    Mutant(
        "B5",
        "the record of its end says of a cancelled workflow that it has failed",
        "tests/dashboard/test_workflow.py::test_a_workflow_that_was_cancelled_is_not_said_to_have_failed",
        [Change("dashboard/templates/workflow.html", "it.job.state if step.kind", '"failed" if step.kind')],
    ),
    Mutant(
        "B6",
        "due jobs that somebody has locked are passed over by every claim, and the doctor names nobody",
        "tests/test_doctor.py::test_a_session_that_has_due_jobs_locked_is_named",
        [Change("store/sql/row_holders.sql", "held.holder = owners.transactionid", "false")],
    ),
    Mutant(
        "B7",
        "a viewer reads the names of arguments in the reason why they do not fit",
        "tests/dashboard/test_security_shown.py::test_a_viewer_does_not_see_in_a_reason_what_does_not_fit",
        [Change("app/masking.py", 'self.value(_UNFIT.sub(r"\\1", value))', "self.value(value)")],
    ),
    Mutant(
        "B8",
        "the remedy for a missing index is to make all of the schema anew",
        "tests/test_doctor.py::test_the_remedy_for_a_missing_index_is_its_statement",
        [Change("doctor/schema.py", "if all(said) and", "if not all(said) and")],
    ),
    Mutant(
        "B9",
        "a sender that repeats a delivery is told of a conflict, and goes on repeating it for days",
        "tests/dashboard/test_webhook.py::test_a_sender_is_told_that_it_is_stored_and_then_that_it_is_there_already",
        [
            Change(
                "dashboard/http/webhook.py",
                'return WebhookResponse(200, f"delivery',
                'return WebhookResponse(409, f"delivery',
            )
        ],
    ),
    Mutant(
        "B10",
        "a lease that has been over for long is amber while others live",
        "tests/test_doctor.py::test_a_lease_that_is_over_for_long_is_red",
        [Change("doctor/workers.py", '"amber" if live and not is_long else "red"', '"amber" if live else "red"')],
    ),
    Mutant(
        "B11",
        "a row that somebody has locked is not said of the job that nobody claims because of it",
        "tests/test_explain.py::test_a_row_that_a_session_has_locked_is_said_with_who_and_what_to_do",
        [Change("explain/pending.py", "yield _row_locked(situation.hold)", "yield from ()")],
    ),
    Mutant(
        "B12",
        "the time between two attempts is drawn as a wait for its turn",
        "tests/dashboard/test_job.py::test_a_life_is_waits_and_attempts_one_after_the_other",
        [Change("dashboard/drawings/job_life.py", 'Period("between", here', 'Period("waiting", here')],
    ),
    Mutant(
        "B13",
        "what is the cause of the others stands behind them in the doctor's lines",
        "tests/test_doctor.py::test_a_session_that_keeps_workers_from_a_duty_is_the_first_line",
        [
            Change(
                "doctor/locks.py",
                "key=lambda one: one.name not in CAUSES or",
                "key=lambda one: one.name in CAUSES or",
            )
        ],
    ),
    Mutant(
        "B14",
        "why something is unknown is said to be the role's rights, whatever it is",
        "tests/dashboard/test_overview.py::test_a_pause_by_a_breaker_is_said_once_and_what_is_unknown_with_its_reason",
        [Change("dashboard/notices.py", "'; '.join(reasons[:_MOST_REASONS])", "'no right'")],
    ),
    Mutant(
        "B3",
        "a worker's role may end the pause of a schedule, or say that somebody else has paused it",
        "tests/faults/test_roles.py::test_nobody_else_may",
        [
            Change(
                "store/roles.py",
                '"booted_at", "jobs")\n\n_VIEW',
                '"booted_at", "jobs", "paused_at", "paused_until")\n\n_VIEW',
            )
        ],
    ),
    Mutant(
        "D1b",
        "approvals wait for somebody, and the overview says that nothing needs attention",
        "tests/dashboard/test_overview.py::test_approvals_suspects_and_schedules_that_stand_still_need_a_person",
        [Change("dashboard/notices.py", ", *_approvals(approvals)]", "]")],
    ),
    Mutant(
        "D1",
        "a page of jobs reads and redacts the arguments of all of them, which it does not show",
        "tests/dashboard/test_large.py::test_a_list_neither_reads_arguments_nor_more_than_the_beginning_of_the_last_error",
        [Change("dashboard/pages/jobs.py", "looks=windows.BRIEF", "looks=None")],
    ),
    Mutant(
        "D2",
        "a page redacts and shows the whole of a megabyte of arguments",
        "tests/dashboard/test_large.py::test_the_page_of_a_job_shows_the_beginning_and_the_api_all_of_it",
        [
            Change(
                "dashboard/http/endpoints.py",
                "value, ExcerptBudget()))\n\n            if not",
                "value, None))\n\n            if not",
            )
        ],
    ),
    Mutant(
        "D3",
        "pages are drawn on the event loop of the app that they are mounted in",
        "tests/dashboard/test_large.py::test_pages_are_drawn_beside_the_event_loop",
        [
            Change(
                "dashboard/render.py",
                "await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **kwargs))",
                "work(*args, **kwargs)",
            )
        ],
    ),
    Mutant(
        "D4",
        "a field that an action does not know is passed over, and the filter without it means every job",
        "tests/dashboard/test_jobs.py::test_a_slip_in_the_name_of_a_field_changes_nothing_and_is_named",
        [Change("dashboard/http/endpoints.py", "            check_fields(action.params, fields)\n", "")],
    ),
    Mutant(
        "D5",
        "a verb of the API is carried out whatever number of jobs its filter means",
        "tests/dashboard/test_jobs.py::test_a_verb_over_more_jobs_than_were_expected_changes_nothing",
        [Change("dashboard/bulk_runs.py", "    if at_least:\n        return\n", "    return\n")],
    ),
    Mutant(
        "D6",
        "whoever shares a secret with us may send any signal to any workflow",
        "tests/dashboard/test_webhook.py::test_a_secret_is_good_for_the_signals_and_workflows_of_its_scope",
        [
            Change(
                "dashboard/http/webhook.py",
                "        if sender.may_send_to_all(delivery.signal):\n            return",
                "        if True:\n            return",
            )
        ],
    ),
    Mutant(
        "page-behind-a-lock-stays-away",
        "a page that is loaded while a table is locked says so until somebody reloads it",
        "tests/dashboard/test_layout.py::test_a_page_behind_a_table_lock_is_loaded_again",
        [Change("dashboard/http/endpoints.py", "_MAY_COME_BACK: Final = (503, 504)", "_MAY_COME_BACK: Final = (503,)")],
    ),
    Mutant(
        "webhook-first-scope",
        "a sender that signs with both secrets of a change is refused what the second may send",
        "tests/dashboard/test_webhook.py::test_every_scope_of_those_who_signed_counts",
        [
            Change(
                "dashboard/http/webhook.py",
                "may = tuple(one for one in senders if one.may_send(sent.signal))",
                "may = tuple(one for one in senders if one.may_send(sent.signal))[:1]",
            )
        ],
    ),
    Mutant(
        "webhook-key-looked-up-twice",
        "a key that is given to another workflow between check and signal takes the signal out of its sender's scope",
        "tests/dashboard/test_webhook.py::"
        "test_a_scoped_signal_goes_to_the_workflow_that_was_checked_though_another_has_its_key_by_then",
        [Change("dashboard/http/webhook.py", "return record.id, sender", "return delivery.to, sender")],
    ),
    Mutant(
        "D7",
        "one visitor's tabs take the streams of all others",
        "tests/dashboard/test_security_feed.py::test_neither_one_visitor_nor_all_of_them_watch_more_than_so_many_pages",
        [Change("dashboard/http/feed.py", "if self._open[who] >= _MOST_OF_ONE:", "if False:")],
    ),
    Mutant(
        "D8",
        "connections on which nobody asks anything take the room of those who do",
        "tests/dashboard/test_security_server.py::test_idle_connections_leave_room_for_those_who_ask",
        [Change("dashboard/http/serve.py", "if len(self.idle) > _MOST_IDLE:", "if False:")],
    ),
    Mutant(
        "D9",
        "others' wrong tokens lock out the right one from the same address",
        "tests/dashboard/test_security_login.py::test_after_ten_wrong_tokens_others_are_not_heard_for_a_while_and_the_right_one_is",
        [
            Change(
                "dashboard/access/tokens.py",
                "        if found:\n            return found[0]\n        if self",
                "        if found and not self._attempts.too_many(address):\n            return found[0]\n        if self",
            )
        ],
    ),
    Mutant(
        "D10b",
        "an open page takes an outage that lasts for its end",
        "tests/dashboard/test_security_feed.py::test_trouble_is_said_as_long_as_it_lasts_and_the_page_comes_back",
        [Change("dashboard/http/feed.py", " and event.startswith(_PAGE) else event", " else event")],
    ),
    Mutant(
        "E9",
        "one job that can be neither claimed nor set aside keeps all others from running",
        "tests/worker/test_refused.py::test_a_job_that_can_neither_be_claimed_nor_set_aside_keeps_no_other_from_it",
        [
            Change(
                "worker/refused.py",
                "            if fault.slow:\n                raise\n            self.tell",
                "            raise\n            self.tell",
            )
        ],
    ),
    Mutant(
        "E10",
        "a job whose arguments cannot be read cannot be set aside: its size is checked again",
        "tests/worker/test_refused.py::test_a_job_is_set_aside_without_its_arguments_being_read",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "claims > 0 or state <> 'ready' or octet_length(args::text)",
                "claims > 0 or octet_length(args::text)",
            )
        ],
    ),
    Mutant(
        "E11",
        "one job that cannot be released keeps all jobs of its task waiting",
        "tests/worker/test_broken_rows.py::test_a_paused_job_that_cannot_be_released_keeps_no_other_waiting",
        [Change("store/sql/job_release.sql", "        and job.id <> all(:without::uuid[])\n", "")],
    ),
    Mutant(
        "E12",
        "one key that cannot be freed keeps all that are over held",
        "tests/worker/test_broken_rows.py::test_a_key_that_cannot_be_freed_keeps_no_other_held",
        [Change("store/sql/key_sweep.sql", " and held.key <> all(:without::text[])", "")],
    ),
    Mutant(
        "U8",
        "what fails for the whole fleet seems to work again whenever another worker has the turn",
        "tests/worker/test_failing.py::test_a_duty_that_fails_for_the_whole_fleet_is_not_taken_for_one_that_works",
        [Change("worker/upkeep.py", "return None if turn.done else UNFINISHED", "return None")],
    ),
    Mutant(
        "U9",
        "a worker that is killed in retention costs the fleet an hour of it",
        "tests/worker/test_failing.py::test_a_duty_that_was_begun_and_not_finished_is_due_again_after_a_minute",
        [Change("store/sql/duty_turn.sql", "least(:every::interval, interval '1 minute')", ":every::interval")],
    ),
    Mutant(
        "D10",
        "an open page looks healthy while the database is away",
        "tests/dashboard/test_browser_outage.py::test_an_open_page_says_what_is_away_and_comes_back",
        [Change("dashboard/static/live.js", "  banner.hidden = false;\n", "")],
        deep="only a browser shows it, and a stream is given up after seconds",
    ),
    Mutant(
        "M2",
        "how many rows a settle has changed is not looked at",
        "tests/worker/test_life.py::test_a_settle_goes_on_while_someone_has_one_of_its_rows_locked",
        [
            Change("worker/settle.py", "if len(written) < len(batch):", "if len(written) > len(batch):"),
        ],
    ),
    Mutant(
        "M3",
        "a second sweeper acts on a list that is out of date",
        "tests/store/test_rescue.py::test_a_job_that_was_settled_or_claimed_anew_meanwhile_is_not_rescued",
        [
            Change(
                "store/sql/job_rescue.sql",
                "            and job.token = orphan.token\n            and (",
                "            and (",
            ),
        ],
    ),
    Mutant(
        "M4",
        "rescue is done once, at the start",
        "tests/worker/test_liveness.py::test_a_killed_worker_is_found_out_long_before_its_lease_is_over",
        [
            Change(
                "worker/upkeep.py",
                'Chore("rescue", rescuer.search_every, rescuer.run)',
                'Chore("rescue", timedelta(days=1), rescuer.run)',
            ),
        ],
    ),
    Mutant(
        "M5",
        "a worker's id is that of its machine",
        "tests/faults/test_zombies.py::test_a_worker_that_is_started_in_the_place_of_a_dead_one_is_not_taken_for_it",
        [
            Change(
                "worker/incarnation.py",
                "self.id = str(uuid4())",
                "self.id = str(UUID(int=sum(socket.gethostname().encode())))",
            ),
            Change("worker/incarnation.py", "from uuid import uuid4", "from uuid import UUID, uuid4"),
            Change(
                "store/sql/worker_register.sql",
                "set lease = rowlock.now() + excluded.lasts",
                "set lease = excluded.lease, pid = excluded.pid",
            ),
        ],
    ),
    Mutant(
        "M6",
        "jobs of a worker whose row is gone are invisible to rescue",
        "tests/worker/test_life.py::test_jobs_of_a_worker_whose_row_is_gone_are_rescued_too",
        [
            Change(
                "store/sql/job_orphans.sql",
                "        and not exists (select from rowlock.workers where workers.id = jobs.worker)",
                "        and exists (select from rowlock.workers where workers.id = jobs.worker and lease <= rowlock.now())",
            ),
        ],
    ),
    Mutant(
        "M7",
        "one job that cannot be rescued keeps the whole batch from it",
        "tests/worker/test_liveness.py::test_a_job_that_postgresql_refuses_to_rescue_is_left_and_the_others_are_not",
        [
            Change(
                "worker/halve.py",
                "        middle = len(batch) // 2\n        for half in (batch[:middle], batch[middle:]):",
                "        for half in ():",
            ),
        ],
    ),
    Mutant(
        "M9",
        "a lease is renewed when it is over",
        "tests/worker/test_liveness.py::test_a_handler_that_blocks_the_loop_for_three_leases_keeps_its_job_and_is_named",
        [
            Change(
                "worker/lease.py",
                'Chore("renewing", timing.renew, self._renew, ',
                'Chore("renewing", timing.lease, self._renew, ',
            ),
        ],
        deep="a handler has to block its loop for three leases of seconds",
    ),
    Mutant(
        "M10",
        "the command line takes a lease and does not pass it on",
        "tests/cli/test_worker.py::test_queues_are_looked_into_as_the_command_line_says",
        [
            Change("cli/worker.py", "            lease=lease,\n", "            lease=None,\n"),
        ],
    ),
    Mutant(
        "M11",
        "a call that is not answered is waited for without end",
        "tests/db/test_deadlines.py::test_a_statement_without_an_answer_fails_and_costs_the_connection",
        [
            Change("db/session.py", "if not ready and time.monotonic() > limit:", "if limit < 0:"),
        ],
    ),
    Mutant(
        "M12",
        "attempts that are cancelled by a stop are not handed back",
        "tests/worker/test_life.py::test_a_stopping_worker_hands_back_what_it_cannot_finish",
        [
            Change(
                "worker/call.py",
                "return HandedBack() if self.draining or attempt.lost else self._failed(attempt, handler, error)",
                "return self._failed(attempt, handler, error)",
            ),
        ],
    ),
    Mutant(
        "M13",
        "a cancellation is told by notification alone",
        "tests/worker/test_cancel.py::test_a_mark_is_found_without_a_notification",
        [
            Change(
                "worker/reconcile.py",
                "        self._look_after(_EVERY)\n\n    async def run_due",
                "\n    async def run_due",
            ),
            Change(
                "worker/reconcile.py",
                '        """Look from now on."""\n        self._look_after(_EVERY)',
                '        """Look from now on."""\n        self._look_after(10_000)',
            ),
        ],
    ),
    Mutant(
        "M14",
        "a cancellation is lost against a completion",
        "tests/store/test_settle.py::test_a_marked_job_ends_as_cancelled_whatever_its_attempt_came_to",
        [
            Change(
                "store/sql/job_settle.sql", "case when cancel_at is null then outcome else 'cancelled' end", "outcome"
            ),
        ],
    ),
    Mutant(
        "M15",
        "after a broken connection nobody is entered again",
        "tests/db/test_waiting.py::test_who_waits_outlives_the_death_of_the_listening_connection",
        [
            Change(
                "db/results.py",
                "            new = self._waiters.open()  # after a crash of the server nothing of what was entered is there\n",
                "",
            ),
        ],
    ),
    Mutant(
        "M16",
        "a lost notification is never made good by looking",
        "tests/db/test_waiting.py::test_the_end_of_a_job_is_found_by_the_poll_when_nobody_told",
        [
            Change(
                "db/results.py",
                "if now < self._poll_at and not (self._told and now >= self._rested_until):",
                "if not (self._told and now >= self._rested_until):",
            ),
        ],
    ),
    Mutant(
        "M19",
        "a child is written down and enqueued in two transactions: between them it is wedged for ever",
        "tests/faults/test_workflow_locks.py::test_a_child_that_was_written_down_and_could_not_be_enqueued_is_neither",
        [
            Change(
                "db/worker_connection.py",
                "            async with connection.transaction():\n                return await aconverse(",
                "            if connection:\n                return await aconverse(",
            ),
        ],
    ),
    Mutant(
        "M20",
        "a signal makes a workflow ready that runs, and a second worker runs the step that is under way",
        "tests/faults/test_family_interleavings.py::test_who_wakes_a_workflow_that_runs_starts_no_second_one[signal]",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "        is_parked := live.wakes_at is not null and coalesce(live.waits_for in ('signal', 'children'), true);\n",
                "        is_parked := true;\n",
            ),
            Change(
                "store/migrations/0001_jobs.sql",
                "        set wakes = live.wakes + 1, wakes_at = null, state = 'ready', waits_for = null, reason = null,",
                "        set wakes = live.wakes + 1, wakes_at = null, state = 'ready', token = null, waits_for = null, reason = null,",
            ),
        ],
    ),
    Mutant(
        "M21",
        "steps of parallel branches are numbered in the order in which these come to them",
        "tests/workflow/test_steps.py::test_branches_that_end_in_another_order_do_not_exchange_their_results",
        [
            Change(
                "workflow/branch.py",
                '        branch = Branch(f"{self.path}{self.number(task)}/", self._seed)\n        branch.task = task\n        return branch\n',
                "        return self\n",
            ),
        ],
    ),
    Mutant(
        "M22",
        "workflows are not taken back from workers that died",
        "tests/faults/test_workflow_zombies.py::test_a_zombie_that_wakes_up_to_enqueue_a_child_has_none",
        [
            Change(
                "store/sql/job_orphans.sql",
                "        where state = 'running' and worker = dead.id and token <> all(:without::uuid[])\n",
                "        where state = 'running' and worker = dead.id and token <> all(:without::uuid[]) and version is null\n",
            ),
        ],
    ),
    Mutant(
        "M23a",
        "whoever looks first is trusted to be alone: what two have seen, two fire",
        "tests/faults/test_interleavings.py::test_a_slot_that_two_fire_has_one_job",
        [
            Change("store/sql/schedule_fire.sql", " and schedule.xmin::text = planned.version", ""),
            Change(
                "store/sql/schedule_fire.sql",
                "where (slot.id in (select job from noted)) is true",
                "where slot.id is not null",
            ),
        ],
    ),
    Mutant(
        "M23b",
        "a clock or a schedule that was set back fires its slots again",
        "tests/store/test_firing.py::test_a_slot_that_is_written_down_makes_no_second_job_whatever_the_schedule_says",
        [
            Change(
                "store/sql/schedule_fire.sql",
                "where (slot.id in (select job from noted)) is true",
                "where slot.id is not null",
            ),
        ],
    ),
    Mutant(
        "M24a",
        "every deploy begins the interval anew, and a long one never ends",
        "tests/worker/test_schedules.py::test_a_deploy_changes_what_it_changes_and_leaves_the_rest",
        [
            Change(
                "store/schedules/declare.py",
                "known.next_at if is_same else holds.rule.after(now)",
                "holds.rule.after(now)",
            ),
        ],
    ),
    Mutant(
        "M24b",
        "a slot is written down in one transaction, and its job is made in another",
        "tests/faults/test_schedules.py::test_two_thousand_slots_and_six_who_fire_them_make_two_thousand_jobs",
        [
            Change(
                "worker/schedule.py",
                '        with connection.sweep("schedules") as free:\n',
                '        connection.run(fire.fire(one.firing._replace(slots=[slot._replace(job=None) for slot in one.firing.slots]) for one in batch[:1]))\n        with connection.sweep("schedules") as free:\n',
            ),
        ],
    ),
    Mutant(
        "M25",
        "a daily job runs twice in the night that has an hour twice, or not at all in the one that lacks it",
        "tests/model/test_cron.py::test_a_daily_job_runs_once_on_the_night_that_has_an_hour_twice",
        [
            Change(
                "model/schedule/cron.py",
                "find = _set_times if expression.is_fixed else _wall_times",
                "find = _wall_times",
            ),
        ],
    ),
    Mutant(
        "M26",
        "a worker's own connection that hangs holds it up for ever",
        "tests/db/test_deadlines.py::test_a_link_comes_back_on_another_connection_when_its_own_hangs",
        [
            Change(
                "db/worker_connection.py",
                "connection = await aconnect(self._server, name=self._name, deadline=self._deadline, engine=True)",
                "connection = await aconnect(self._server, name=self._name)",
            ),
        ],
    ),
    Mutant(
        "M28",
        "a session's lock is taken through a pooler",
        "tests/faults/test_poolers.py::test_everything_works_behind_a_pooler_and_nothing_is_left_on_its_connections",
        [
            Change(
                "worker/lease.py",
                "if session is self._entered_on or session.pooled:",
                "if session is self._entered_on:",
            ),
        ],
    ),
    Mutant(
        "M30",
        "what fails once for a passing reason is not tried again",
        "tests/faults/test_network.py::test_every_kind_of_trouble_passes",
        [
            Change(
                "db/worker_connection.py",
                "if kind is ErrorKind.REFUSED:",
                "if kind in (ErrorKind.REFUSED, ErrorKind.AGAIN):",
            ),
        ],
    ),
    Mutant(
        "M33",
        "rows are locked in no order",
        "tests/store/test_settle.py::test_settlers_lock_in_one_order",
        [
            Change(
                "store/settle.py",
                "        for job, outcome, keep in attempts\n    ]\n    rows.sort(key=itemgetter(0, 1))",
                "        for job, outcome, keep in attempts\n    ]",
            ),
        ],
    ),
    Mutant(
        "M36",
        "arguments that do not fit stop the worker",
        "tests/worker/test_run.py::test_arguments_that_no_longer_fit_wait_for_code_that_takes_them",
        [
            Change(
                "worker/call.py",
                "        except InvalidArguments as error:\n            return Blocked(",
                "        except ZeroDivisionError as error:\n            return Blocked(",
            ),
        ],
    ),
    Mutant(
        "M37",
        "a notification carries what the job carries",
        "tests/faults/test_secrets.py::test_it_is_in_no_notification_no_activity_and_no_log_record",
        [
            Change(
                "store/sql/job_put.sql",
                "select rowlock.notify(rowlock.channel(parked.queue), '')",
                "select rowlock.notify(rowlock.channel(parked.queue), :args)",
            ),
        ],
    ),
    Mutant(
        "M38",
        "a connection that is given up stays open",
        "tests/db/test_deadlines.py::test_a_cancelled_statement_costs_the_connection_and_waits_for_nobody",
        [
            Change(
                "db/session.py",
                "        except (asyncio.CancelledError, KeyboardInterrupt, Late):",
                "        except ZeroDivisionError:",
            ),
        ],
    ),
    Mutant(
        "M39",
        "the first failed connection ends the worker",
        "tests/faults/test_network.py::test_a_worker_outlives_an_outage_in_which_nobody_answers",
        [
            Change(
                "db/worker_connection.py",
                "except (psycopg.Error, OSError) as error:  # a resolver's too",
                "except ZeroDivisionError as error:",
            ),
        ],
    ),
    Mutant(
        "M40",
        "a job that kills its workers does so for ever",
        "tests/worker/test_life.py::test_a_job_that_kills_its_workers_fails_as_poison_after_three_crashes",
        [
            Change(
                "store/sql/job_rescue.sql",
                "            else orphans.crashes + 1\n",
                "            else orphans.crashes\n",
            ),
        ],
    ),
    Mutant(
        "M41",
        "a lease is not renewed at all",
        "tests/store/test_presence.py::test_a_renewal_lets_the_lease_last_for_its_whole_length_from_now",
        [
            Change("store/sql/worker_renew.sql", "set lease = rowlock.now() + lasts", "set lease = lease"),
        ],
    ),
    Mutant(
        "M42",
        "the loser of a key believes in a winner that is gone",
        "tests/test_key_periods.py::test_a_key_is_free_when_its_period_is_over",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "        if not found then\n            if not (held.task = task and replaces) and",
                "        if not found then\n            return false;\n            if not (held.task = task and replaces) and",
            ),
        ],
    ),
    Mutant(
        "M42a",
        "a job that runs is given other arguments, and they are lost",
        "tests/faults/test_key_interleavings.py::test_a_job_is_changed_before_it_is_claimed_or_another_is_made",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "        elsif live.state = 'running' then\n            update",
                "        elsif false then\n            update",
            ),
        ],
    ),
    Mutant(
        "M42b",
        "a job that is sent again takes the key that it has lost from another",
        "tests/faults/test_key_interleavings.py::test_a_job_that_is_sent_again_is_made_once_whoever_has_its_key_by_now",
        [
            Change("store/enqueue.py", "        jobs = [job for job in jobs if job.id not in there]\n", ""),
        ],
    ),
    Mutant(
        "M42c",
        "a key is free when its job has succeeded, whatever its period",
        "tests/test_key_periods.py::test_a_key_with_a_period_is_held_after_its_job_has_succeeded",
        [
            Change("store/sql/job_settle.sql", "coalesce(until <= rowlock.now(), true)", "true"),
        ],
    ),
    Mutant(
        "M43",
        "the pause after a failure is computed without a bound",
        "tests/model/test_retry.py::test_no_count_of_failures_overflows_and_no_delay_is_negative_or_over_the_cap_and_its_jitter",
        [
            Change(
                "model/retry.py",
                "        if growth and count >= math.log(self.cap / self.base) / growth:\n            return self.cap\n",
                "",
            ),
        ],
    ),
    Mutant(
        "M44",
        "an outcome that could not be written is dropped while its worker lives",
        "tests/worker/test_life.py::test_a_settle_goes_on_while_someone_has_one_of_its_rows_locked",
        [
            Change(
                "worker/settle.py",
                "        self._finished.extend(finished)\n        self._some.set()",
                "        self._some.set()",
            ),
        ],
    ),
    Mutant(
        "M45",
        "a server in trouble is asked again without a pause",
        "tests/db/test_deadlines.py::test_a_link_knocks_less_and_less_often_while_nobody_answers",
        [
            Change(
                "db/worker_connection.py",
                "await asyncio.sleep(next(pauses) * random.uniform(0.5, 1.0))  # jitter, not a secret\n",
                "await asyncio.sleep(0)\n",
            ),
        ],
    ),
    Mutant(
        "M46",
        "pages are cut by a moment that many rows share",
        "tests/test_operate.py::test_events_come_in_pages",
        [
            Change(
                "store/sql/event_list.sql",
                "    where :job::uuid is null and (at, id) < (:before_at::timestamptz, :before_id::uuid)",
                "    where :job::uuid is null and at < :before_at::timestamptz and :before_id::uuid is not null",
            ),
        ],
    ),
    Mutant(
        "M47",
        "a pause is not read by the claim",
        "tests/faults/test_interleavings.py::test_a_paused_queue_is_not_claimed_from_once_the_pause_is_committed",
        [
            Change(
                "store/sql/job_claim.sql",
                " and lane.queue <> all(array(select name from paused where kind = 'queue'))",
                "",
            ),
        ],
    ),
    Mutant(
        "M49",
        "what is committed late, below the floor, is never looked for",
        "tests/worker/test_lanes.py::test_an_idle_worker_looks_below_at_least_once_a_second_and_a_busy_one_at_least_every_ten",
        [
            Change("worker/queues.py", "min(factor * self._look_took, longest)", "1_000_000"),
        ],
    ),
    Mutant(
        "M50",
        "a word of the caller's is written into a statement",
        "tests/house/test_safety.py::test_what_is_executed_was_written_by_us",
        [
            Change(
                "db/thread_connection.py",
                "            yield self._take(",
                "            connection.execute(f\"select '{duty}'\")\n            yield self._take(",
            ),
        ],
    ),
    Mutant(
        "R1",
        "a reason to cancel that is no clean text breaks the settle of all",
        "tests/worker/test_outcomes.py::test_an_odd_reason_to_cancel_is_stored_as_text_and_the_jobs_beside_it_run_once",
        [Change("worker/call.py", "return Cancelled(reason_of(error.reason))", "return Cancelled(error.reason)")],
    ),
    Mutant(
        "R2",
        "a retry policy that raises a Cancel keeps its slot for good",
        "tests/worker/test_outcomes.py::test_a_policy_that_raises_leaves_its_slot_free",
        [
            Change("model/retry.py", "except BaseException as fault:", "except Exception as fault:"),
            Change(
                "worker/run.py",
                "except BaseException as error:  # the slot",
                "except ZeroDivisionError as error:  # the slot",
            ),
        ],
    ),
    Mutant(
        "R3",
        "an outcome that cannot be sent stops the settler",
        "tests/worker/test_outcomes.py::test_an_outcome_that_cannot_be_sent_is_refused_alone",
        [
            Change(
                "worker/settle.py",
                "        except Exception as error:  # a statement that cannot be built or sent: one outcome is no text, say\n            raise Refused(error) from error\n",
                "",
            )
        ],
    ),
    Mutant(
        "R4",
        "a job that stops the settler is run for ever, and all beside it",
        "tests/worker/test_outcomes.py::test_a_job_that_stops_the_settler_again_and_again_ends_as_poison",
        [Change("worker/incarnation.py", "self._unsettled = self._runner.unsettled() if", "self._unsettled = [] if")],
    ),
    Mutant(
        "R5",
        "what was claimed ahead is given back only when there is no room",
        "tests/worker/test_runner.py::test_what_was_claimed_ahead_goes_back_in_time_although_there_is_room",
        [
            Change(
                "worker/run.py",
                "if stale := self._ahead.stale():",
                "if self.room() <= 0 and (stale := self._ahead.stale()):",
            )
        ],
    ),
    Mutant(
        "R6",
        "one worker claims all jobs of sync tasks, threads or not",
        "tests/worker/test_runner.py::test_jobs_that_wait_for_a_thread_are_few_hold_up_nobody_and_go_back_in_time",
        [
            Change(
                "worker/prefetch.py",
                "        if not self._threaded:\n            return room",
                "        if room:\n            return room",
            )
        ],
    ),
    Mutant(
        "R7",
        "calls that waited for a thread begin when those before them are cut short",
        "tests/worker/test_threads.py::test_a_call_that_waits_does_not_begin_when_all_calls_are_cancelled_at_once",
        [Change("worker/threads.py", " or call.answer.cancelled():", ":")],
    ),
    Mutant(
        "R8",
        "suspects of a batch run side by side",
        "tests/worker/test_suspects.py::test_suspects_that_come_back_as_ready_are_set_aside_at_once",
        [Change("worker/prefetch.py", "        if self._suspect is not None:", "        if not row:")],
    ),
    Mutant(
        "R9",
        "the engine waits for the executor that handlers sit in",
        "tests/worker/test_outcomes.py::test_a_worker_ends_in_time_while_handlers_sit_in_the_executor_of_the_loop",
        [
            Change(
                "db/threads.py",
                '    threading.Thread(target=work, name="rowlock-apart", daemon=True).start()\n',
                "    loop.run_in_executor(None, work)\n",
            )
        ],
    ),
    Mutant(
        "R10",
        "when a worker dies with a suspect, all that ran beside it has crashed",
        "tests/store/test_rescue.py::test_the_crash_is_the_suspects_alone_and_none_of_what_had_not_begun",
        [
            Change(
                "store/sql/job_rescue.sql",
                "            when beside.has_suspect and orphans.crashes < :suspect::integer then orphans.crashes\n",
                "",
            )
        ],
    ),
    Mutant(
        "R11",
        "a worker whose own lease is over by a clock put forward rescues from the living",
        "tests/store/test_rescue.py::test_nobody_rescues_whose_own_lease_is_over_by_the_same_clock",
        [
            Change(
                "store/sql/job_rescue.sql",
                "    where :worker is null or exists (",
                "    where true or exists (",
            ),
        ],
    ),
    Mutant(
        "R13",
        "after the database's clock was set back, what was enqueued for at once waits until it gets there again",
        "tests/worker/test_clock_steps.py::test_what_was_enqueued_for_at_once_runs_at_once_after_the_clock_was_set_back",
        [
            Change(
                "worker/lease.py",
                "            self.set_back += timedelta(seconds=self._offset - offset)\n",
                "",
            ),
        ],
    ),
    Mutant(
        "floors-of-the-future",
        "after the database's clock was set back, new jobs lie below the workers' floors until it gets there again",
        "tests/worker/test_clock_steps.py::test_what_was_enqueued_for_at_once_runs_at_once_after_the_clock_was_set_back",
        [Change("worker/claim.py", "        self.floors.forget()\n", "")],
    ),
    Mutant(
        "W12",
        "a signal is acknowledged before it is on disk, and a crash of the server loses it",
        "tests/faults/test_crashes_around_a_wake.py"
        "::test_a_workflow_goes_on_with_what_it_was_told_wherever_the_server_crashes",
        [
            Change(
                "store/sql/signal_send.sql",
                "as sent;",
                "as sent\nwhere set_config('synchronous_commit', 'off', true) = 'off';",
            ),
        ],
    ),
    Mutant(
        "R15",
        "a connection that breaks under a look from the bottom is taken for a look that is too slow",
        "tests/faults/test_network.py::test_a_look_whose_connection_breaks_is_not_taken_for_a_slow_one",
        [Change("worker/claim.py", "            if not error.slow:", "            if False:")],
    ),
    Mutant(
        "R16",
        "after the database's clock was set back, a workflow's sleep of a second lasts until it gets there again",
        "tests/worker/test_clock_steps.py"
        "::test_what_workflows_began_to_wait_for_while_the_clock_was_ahead_is_brought_forward",
        [
            Change(
                "store/sql/job_hasten.sql", "from picked where wakes_at is not null", "from picked where wakes_at < 0"
            )
        ],
    ),
    Mutant(
        "R17",
        "a worker whose database's clock was set back and put forward again is taken for dead",
        "tests/store/test_presence.py::test_a_clock_that_is_set_back_and_put_forward_again_ends_nobodys_lease",
        [Change("store/sql/worker_renew.sql", "and not dead", "and (lease > rowlock.now() or lease > started_at)")],
    ),
    Mutant(
        "R12",
        "progress is written while the handler's own transaction is open",
        "tests/worker/test_transaction_progress.py::test_nothing_is_written_to_a_job_while_a_repeatable_read_block_of_its_handler_is_open",
        [Change("worker/incarnation.py", "                open=self._settler.progress.held,\n", "")],
    ),
    Mutant(
        "E1",
        "a statement that fails for any cause but its data is repeated for ever, and all that waits behind it waits",
        "tests/worker/test_refused.py::test_an_outcome_that_cannot_be_written_fails_its_job_and_holds_up_no_other",
        [Change("db/worker_connection.py", "if failures >= tries:", "if failures < 0:")],
    ),
    Mutant(
        "E2",
        "a job whose row cannot be read stays in its queue",
        "tests/worker/test_refused.py::test_a_job_that_cannot_be_claimed_is_set_aside_and_those_behind_it_run",
        [Change("store/sql/job_set_aside.sql", "(state = 'ready' or", "(state = 'running' or")],
    ),
    Mutant(
        "E3",
        "a job that cannot end is taken up by every worker that starts",
        "tests/worker/test_refused.py::test_a_job_that_cannot_end_in_any_way_is_set_aside_and_says_why",
        [
            Change(
                "store/sql/job_take_up.sql",
                "            and coalesce(job.reason, '') not like 'PostgreSQL refuses to %'\n",
                "",
            ),
            Change(
                "store/sql/job_take_up.sql",
                "            and coalesce(one.reason, '') not like 'PostgreSQL refuses to %'\n",
                "",
            ),
        ],
    ),
    Mutant(
        "E4",
        "behind a pooler two tasks of a worker share one transaction",
        "tests/worker/test_refused.py::test_behind_a_pooler_nobody_gets_into_the_transaction_of_another",
        [
            Change(
                "db/worker_connection.py", "self._exchange = asyncio.Lock()", "self._exchange = asyncio.Semaphore(99)"
            )
        ],
    ),
    Mutant(
        "E5",
        "a COMMIT that PostgreSQL answers with ROLLBACK is taken for one",
        "tests/worker/test_refused.py::test_a_transaction_that_has_failed_is_not_taken_for_committed",
        [
            Change(
                "db/session.py",
                "    if connection.pgconn.transaction_status != TransactionStatus.INTRANS:",
                "    if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:",
            )
        ],
    ),
    Mutant(
        "E6",
        "a wait that is given twice is opened twice, and the statement that records it never works",
        "tests/worker/test_refused.py::test_a_wait_that_is_given_twice_is_one_wait",
        [
            Change(
                "store/workflows/steps.py",
                "    rows = sorted(by_step.values(), key",
                "    rows = sorted([(job.id, job.token, step) for job, step in steps], key",
            ),
        ],
    ),
    Mutant(
        "E7",
        "a workflow may remember more than can ever be folded into its history",
        "tests/worker/test_refused.py::test_a_workflow_that_would_remember_too_much_fails_and_is_warned_before",
        [Change("worker/step_recorder.py", "if size > LARGEST_RECORD and not", "if size < 0 and not")],
    ),
    Mutant(
        "E8",
        "the server goes on with what a worker has given up on",
        "tests/worker/test_refused.py::test_the_server_ends_what_an_engine_session_has_given_up_on",
        [Change("db/session.py", "    if engine:\n", "    if engine and deadline < 0:\n")],
    ),
    Mutant(
        "T12",
        "a signal brings a workflow back to life that is being cancelled",
        "tests/faults/test_signal_interleavings.py::test_a_cancelled_workflow_never_comes_back_however_many_signals_come",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "            when live.cancel_at is not null then 'ended'\n            else 'sent'\n",
                "            else 'sent'\n",
            ),
        ],
    ),
    Mutant(
        "T13",
        "a duplicate of a signal is stored once, and wakes twice",
        "tests/store/test_sql_signal.py::test_a_second_signal_with_the_same_key_is_nothing",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "        if answer <> 'sent' or is_mine then\n",
                "        if answer <> 'sent' or is_mine then\n            update rowlock.jobs as one set wakes = one.wakes + 1 where one.id = job;\n",
            ),
        ],
    ),
    Mutant(
        "T14",
        "a signal that comes while its wait begins is stored, and wakes nobody: who parks does not look",
        "tests/faults/test_signal_interleavings.py::test_a_signal_that_comes_while_its_wait_begins_is_read_or_wakes",
        [
            Change(
                "store/sql/workflow_return.sql",
                "            when attempt.parked and job.wakes >= attempt.wakes_at then 'back'\n",
                "",
            ),
        ],
    ),
    Mutant(
        "T14b",
        "a signal that comes while its wait begins is stored, and wakes nobody: who sends has looked too early",
        "tests/faults/test_signal_interleavings.py::test_a_signal_that_waits_for_the_one_who_parks_wakes_the_workflow",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "into live from rowlock.jobs as one where one.id = job for update;",
                "into live from rowlock.jobs as one where one.id = job;",
            ),
        ],
    ),
    Mutant(
        "T14c",
        "a signal whose answer was lost is sent again, and is another one",
        "tests/workflow/test_sending.py::test_a_lost_answer_is_asked_for_again_and_nothing_is_sent_twice",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "where one.id = send_signal.id and one.job = send_signal.job",
                "where false",
            ),
            Change(
                "store/migrations/0001_jobs.sql",
                "            id, job, 1 + coalesce(",
                "            gen_random_uuid(), job, 1 + coalesce(",
            ),
        ],
    ),
    Mutant(
        "T14d",
        "a signal that comes while its workflow ends is told to be stored, and is in no record",
        "tests/workflow/test_end_and_signal.py::test_a_signal_that_slips_in_while_its_workflow_ends_is_in_its_record",
        [
            Change(
                "store/sql/workflow_settle.sql",
                "    where job.wakes = (select seen.wakes from rowlock.jobs as seen where seen.id = attempt.id)\n",
                "",
            ),
        ],
    ),
    Mutant(
        "O1",
        "a bulk retry brings back what somebody cancelled",
        "tests/test_operate.py::test_only_failed_jobs_are_retried_unless_others_are_named",
        [
            Change(
                "model/verb.py", 'by_default=frozenset({"failed"})', 'by_default=frozenset({"failed", "cancelled"})'
            ),
        ],
    ),
    Mutant(
        "O2",
        "a worker may delete an operator's pause",
        "tests/faults/test_definers.py::test_a_worker_ends_no_pause_that_holds_and_cannot_say_that_an_operator_did",
        [
            Change(
                "store/roles.py",
                '    "pauses": {"select": ALL},\n    "breakers"',
                '    "pauses": {"select": ALL, "delete": ALL},\n    "breakers"',
            ),
        ],
    ),
    Mutant(
        "O3",
        "a worker may write that an operator has resumed a queue",
        "tests/faults/test_definers.py::test_a_worker_ends_no_pause_that_holds_and_cannot_say_that_an_operator_did",
        [
            Change(
                "store/roles.py",
                '("rescued", "poisoned", "replaced", "abandoned")',
                '("rescued", "poisoned", "resumed", "replaced", "abandoned")',
            ),
        ],
    ),
    Mutant(
        "O4",
        "only the API bounds what a job is given",
        "tests/faults/test_definers.py::test_a_row_that_is_inserted_without_the_api_is_bounded_as_by_the_api",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "pg_column_size(args) <= 1048576 + 4",
                "pg_column_size(args) <= 1048576000",
            ),
        ],
    ),
    Mutant(
        "O5",
        "what failed lately is looked for among the jobs that were made lately",
        "tests/test_filters.py::test_a_job_that_has_just_failed_is_found_by_when_it_ended_however_old_it_is",
        [
            Change("store/sql/history_scan.sql", "past.ended_at >= :ended_after", "past.created_at >= :ended_after"),
        ],
    ),
    Mutant(
        "O-latest-end",
        "pages of ended jobs are cut by a moment that many jobs share",
        "tests/test_filters.py::test_ended_jobs_alone_are_listed_by_when_they_ended_each_once_latest_first",
        [
            Change(
                "store/sql/history_scan.sql",
                "            and ended.state <> 'succeeded'\n            and (ended.ended_at, ended.id) < (:before_end::timestamptz, :before::uuid)",
                "            and ended.state <> 'succeeded'\n            and ended.ended_at < :before_end::timestamptz and :before::uuid is not null",
            ),
        ],
    ),
    Mutant(
        "O-secrets-of-schedules",
        "the command line shows the secrets in the arguments of schedules",
        "tests/cli/test_jobs.py::test_secrets_are_masked_in_schedules_workflows_previews_and_pauses_too",
        [Change("cli/schedules/show.py", "masked(app.schedules.get(name), reveal=reveal)", "app.schedules.get(name)")],
    ),
    Mutant(
        "O-folded-secret",
        "a message is folded before its secrets are masked, and what is left of one is shown",
        "tests/cli/test_jobs.py::test_failures_are_counted_by_task_and_error_and_show_no_secret",
        [
            Change(
                "model/failure_groups.py",
                "return folded(redact_text(self.message))",
                "return redact_text(folded(self.message))",
            ),
        ],
    ),
    Mutant(
        "O6",
        "the doctor names the consequences of a lock, and not who holds it",
        "tests/test_doctor.py::test_who_has_locked_the_jobs_is_the_first_line_and_the_rest_is_folded_into_it",
        [
            Change("store/sql/lock_holders.sql", ", 'AccessExclusiveLock')", ")"),
        ],
    ),
    Mutant(
        "O6b",
        "the doctor says that no table is locked while a lock on one that it has not listed stops the fleet",
        "tests/test_doctor.py::test_a_lock_on_any_table_of_ours_or_on_a_part_of_one_is_named",
        [
            Change(
                "store/sql/lock_holders.sql",
                "    order by held.pid, whole.relname",
                "        and class.relname in ('jobs', 'history', 'keys', 'workers', 'steps', 'events', 'duties', 'schedules')\n    order by held.pid, whole.relname",
            ),
        ],
    ),
    Mutant(
        "O6c",
        "a job is said to start within a second while a lock keeps every worker from claiming",
        "tests/test_explain.py::test_a_lock_that_keeps_workers_from_claiming_is_said_of_a_due_job",
        [
            Change(
                "explain/pending.py",
                "if situation.unclaimable is not None and ",
                "if False and situation.unclaimable and ",
            )
        ],
    ),
    Mutant(
        "cut-since-its-start",
        "a worker that was cut off a second ago is said to be dead for as long as it has run",
        "tests/store/test_presence.py::test_a_worker_that_was_taken_for_dead_has_been_so_since_then_however_long_it_has_run",
        [
            Change(
                "store/sql/worker_look.sql",
                "set dead = true, lease = rowlock.now()",
                "set dead = true, lease = least(started_at, rowlock.now())",
            ),
        ],
    ),
    Mutant(
        "cut-until-the-clock-comes-round",
        "a worker that was taken for dead lives again once the clock is set back",
        "tests/store/test_presence.py::test_a_worker_that_was_taken_for_dead_stays_so_when_the_clock_is_set_back",
        [
            Change(
                "store/sql/worker_look.sql",
                "and (dead or lease > rowlock.now() + 2 * lasts)",
                "and lease > rowlock.now() + 2 * lasts",
            )
        ],
    ),
    Mutant(
        "tags-with-null",
        "a job enqueued in SQL with a null among its tags can neither be explained nor shown",
        "tests/store/test_sql_enqueue.py::test_tags_that_are_no_list_of_words_are_refused_also_in_a_row_of_ones_own",
        [Change("store/migrations/0001_jobs.sql", " and array_position(tags, null) is null)", ")")],
    ),
    Mutant(
        "idle-schedule",
        "a schedule that starts no jobs, for its last one waits for code, is green",
        "tests/test_doctor.py::test_a_fault_among_the_rows_turns_its_lines_and_no_others",
        [
            Change(
                "store/sql/schedule_check.sql",
                "having count(*) = :slots::integer and",
                "having count(*) > :slots::integer and",
            )
        ],
    ),
    Mutant(
        "shared-row-locks",
        "a job that two sessions have locked for share waits, and nobody says for whom",
        "tests/test_explain.py::test_of_several_sessions_that_have_a_row_locked_one_is_said_and_how_many_others_there_are",
        [
            Change(
                "store/sql/job_hold.sql",
                "                or transactionid = any(array(select member.xid from pg_get_multixact_members(job.list) as member))\n",
                "",
            )
        ],
    ),
    Mutant(
        "pid-with-commas",
        "explain prints a pid with separators, which no kill and no query takes",
        "tests/cli/test_explain.py::test_a_pid_can_be_typed_as_it_is_printed",
        [Change("cli/explain.py", 'if name == "pid" else', "if False else")],
    ),
    Mutant(
        "all-in-paused-queues",
        "the overview says that nothing is due while all due jobs are in a paused queue",
        "tests/dashboard/test_overview.py::test_due_jobs_that_are_all_in_paused_queues_are_no_oldest_job",
        [Change("dashboard/pages/overview.py", " and name not in paused}", "}")],
    ),
    Mutant(
        "O7",
        "a job that its worker has only claimed is said to run",
        "tests/test_explain.py::test_a_job_that_was_claimed_ahead_is_not_said_to_run",
        [
            Change("explain/running.py", "situation.hold.begun is not True", "situation.hold.begun is None"),
        ],
    ),
    Mutant(
        "W1",
        "a step is written without a lock on its workflow's row, and a zombie's is committed after others have it",
        "tests/faults/test_family_interleavings.py::test_a_step_whose_transaction_commits_late_is_there_before_another_takes_over_or_never",
        [
            Change("store/sql/step_record.sql", "        for no key update skip locked\n", ""),
        ],
    ),
    Mutant(
        "W2",
        "a step is written under a lock that others share, and waits for their transactions",
        "tests/faults/test_family_interleavings.py::test_a_transaction_that_nobody_ends_holds_up_no_others_step",
        [
            Change("store/sql/step_record.sql", "for no key update skip locked", "for share skip locked"),
        ],
    ),
    Mutant(
        "W3",
        "a step is written by whoever knows the workflow's id",
        "tests/faults/test_family_interleavings.py::test_a_zombie_writes_nothing_once_another_has_its_workflow",
        [
            Change("store/sql/step_record.sql", " and job.token = step.token", ""),
        ],
    ),
    Mutant(
        "W4",
        "a child's end is in its parent's record, and wakes nobody",
        "tests/faults/test_family_interleavings.py::test_a_child_that_ends_while_its_parent_parks_wakes_it",
        [
            Change(
                "store/sql/workflow_settle.sql",
                "    where id = any((select ids from counted)::uuid[])\n",
                "    where id = any((select ids from counted)::uuid[]) and false\n",
            ),
        ],
    ),
    Mutant(
        "W5",
        "a child that ends in one statement with its parent is told to a row that is gone",
        "tests/faults/test_family_interleavings.py::test_a_child_that_ends_with_its_parent_in_one_statement",
        [
            Change(
                "store/sql/workflow_settle.sql",
                " and parent <> all(array(select id from found)))",
                ")",
            ),
        ],
    ),
    Mutant(
        "W6",
        "who parks does not look whether somebody has asked to cancel the workflow",
        "tests/faults/test_family_interleavings.py::test_a_cancel_of_a_workflow_that_parks_is_noticed_whoever_comes_first",
        [
            Change(
                "store/sql/workflow_return.sql",
                "            when job.cancel_at is not null and not attempt.undoing then 'back'\n",
                "",
            ),
        ],
    ),
    Mutant(
        "J1",
        "a worker whose workflow lost a framework's connection in a thread goes on with the broken one for ever",
        "tests/contrib/test_django_connections.py::test_steps_go_on_after_their_connection_broke",
        [Change("worker/call.py", "in_thread=self._step_in_thread", "in_thread=self._in_thread")],
    ),
    Mutant(
        "J2",
        "async handlers share one connection of Django's, and each that ends closes it under the others",
        "tests/contrib/test_django_connections.py"
        "::test_an_async_handler_that_ends_leaves_the_connections_of_others_alone",
        [Change("db/django_alias.py", "if self._shared or _has_a_thread():", "if True:")],
    ),
    Mutant(
        "J7",
        "a TextChoices is refused where a plain str is declared, or the other way round, by where the model came from",
        "tests/model/test_payload.py::test_an_enums_member_and_its_value_stand_for_each_other",
        [
            Change(
                "model/payload/round_trip.py",
                "as_float or _is_value_of(sent, received) or _is_value_of(received, sent)",
                "as_float",
            )
        ],
    ),
    Mutant(
        "J8",
        "a verb of operators does not see the job of the open transaction block, and commits what the block rolls back",
        "tests/testing/test_django.py::test_jobs_run_inside_a_test_case",
        [
            Change(
                "app/jobs.py",
                "Exchange(self._database, editing))",
                "Exchange(self._database, editing, apart=True))",
            ),
        ],
    ),
    Mutant(
        "J3",
        "a test that may not use the database reaches the real one by connections of ours",
        "tests/contrib/test_django_without_database.py::test_the_guard_of_pytest_django_forbids_connections_of_ours",
        [Change("db/within.py", "            self._framework.check()\n", "            pass\n")],
    ),
    Mutant(
        "J9",
        "with Django 4.2 a test that may not use the database reaches the real one by connections of ours",
        "tests/contrib/test_django_without_database.py::test_the_guard_of_django_before_51_forbids_connections_of_ours",
        [
            Change(
                "db/django_alias.py",
                "            patched()\n        return own",
                "            pass\n        return own",
            )
        ],
    ),
    Mutant(
        "J4",
        "a handler's transaction does not cover what it writes by the framework's connection",
        "tests/contrib/test_django_connections.py::test_a_handlers_transaction_is_on_the_connection_of_the_orm",
        [Change("db/handler_connections.py", "        return self._within.choose(named)\n", "        return named\n")],
    ),
    Mutant(
        "J5",
        "a cancellation stays although the transaction around it is rolled back",
        "tests/db/test_conformance_cancel.py::test_a_cancellation_disappears_with_the_rollback[django]",
        [
            Change(
                "app/job.py",
                "        return (yield from Exchange(database, cancelling, connection=lent))\n",
                "        return (yield from Exchange(database, cancelling))\n",
            ),
        ],
    ),
    Mutant(
        "J6",
        "drain finds no job in Django's TestCase, and says nothing",
        "tests/testing/test_django.py::test_jobs_run_inside_a_test_case",
        [
            Change(
                "testing/drain.py",
                "    connection = app.database.within.block() if connection is None else connection\n",
                "",
            ),
        ],
    ),
    Mutant(
        "W7",
        "a transaction whose workflow's row somebody has just then is taken for a zombie's",
        "tests/faults/test_workflow_locks.py::test_a_transaction_of_a_workflow_waits_for_one_who_has_its_row",
        [
            Change(
                "workflow/step_run.py",
                "    if not ((yield query) or ((yield jobs.lock(row.id)) and (yield query))):",
                "    if not (yield query):",
            ),
        ],
    ),
    Mutant(
        "W8",
        "a child whose parent's row somebody has just then is taken for a zombie's",
        "tests/faults/test_workflow_locks.py::test_the_transaction_of_a_child_waits_for_one_who_has_its_parents_row",
        [
            Change(
                "store/settle.py",
                "        if job.parent is not None:\n            yield jobs.lock(job.parent)\n",
                "",
            ),
        ],
    ),
    Mutant(
        "L1",
        "the log does not say what went wrong",
        "tests/worker/test_run.py::test_a_success_is_logged_quietly_and_a_failure_with_its_error_and_the_job",
        [
            Change(
                "worker/run.py",
                "self._report(row, outcome, took, attempt.error)",
                "self._report(row, outcome, took, None)",
            ),
        ],
    ),
    Mutant(
        "L4",
        "lines of handlers do not say which job they are about",
        "tests/cli/test_logs.py::test_lines_of_handlers_name_their_job",
        [
            Change("logs.py", "job = running.get(None)", "job = None"),
        ],
    ),
    Mutant(
        "L5",
        "a worker of all queues knows only those of its own tasks",
        "tests/worker/test_queues.py::test_a_worker_of_all_queues_runs_what_is_there_and_what_comes_later",
        [
            Change("worker/queues.py", "0.0 if queues.is_all else inf", "inf"),
        ],
    ),
    Mutant(
        "L6",
        "a worker says nothing of tasks of its app that nobody will run",
        "tests/worker/test_queues.py::test_a_worker_warns_of_queues_of_its_tasks_that_nobody_looks_into",
        [
            Change("worker/queues.py", "    if not others:\n", "    if others:\n"),
        ],
    ),
    Mutant(
        "L7",
        "a mistyped name is paused, and the right one goes on",
        "tests/cli/test_queues.py::test_a_pause_of_a_name_that_nobody_uses_is_refused",
        [
            Change("cli/shared/pause_options.py", "        if not typed.anyway:\n", "        if False:\n"),
        ],
    ),
    Mutant(
        "L8",
        "an app that disables existing loggers silences its worker",
        "tests/cli/test_logs.py::test_each_line_comes_once_whatever_the_app_does_about_logging",
        [
            Change("worker/logs.py", "            logger.disabled = False\n", "            pass\n"),
        ],
    ),
    Mutant(
        "log-twice",
        "each line of a worker comes twice, or an app's own format is without effect",
        "tests/cli/test_logs.py::test_each_line_comes_once_whatever_the_app_does_about_logging",
        [
            Change(
                "cli/shared/log_setup.py",
                "        logging.lastResort = handler\n",
                "        logging.getLogger().addHandler(handler)\n",
            ),
        ],
    ),
    Mutant(
        "log-first-line",
        "a worker does not say in which database it looks for jobs",
        "tests/cli/test_worker.py::test_the_first_line_names_the_database_and_where_it_was_said",
        [
            Change(
                "worker/incarnation.py",
                "self._config.slots, self._config.place())\n        log.info(",
                "self._config.slots, self.name)\n        log.info(",
            ),
        ],
    ),
    Mutant(
        "log-totals-of-the-last-minute",
        "what a worker did since its last full minute is in no line when it stops",
        "tests/cli/test_logs.py::test_lines_of_handlers_name_their_job",
        [Change("worker/counts.py", "(last or minute.ends <= now)", "minute.ends <= now")],
    ),
    Mutant(
        "cli-rights-in-a-sentence",
        "a role that lacks a right is told to fix that and try again, and not which right",
        "tests/cli/test_worker.py::test_a_worker_whose_role_lacks_rights_or_does_not_exist_ends_with_a_sentence",
        [
            Change("db/errors.py", "case psycopg.errors.InsufficientPrivilege():", "case psycopg.errors.DiskFull():"),
        ],
    ),
    Mutant(
        "retry-before-its-time",
        "a job that was cancelled before its time runs at once when it is retried",
        "tests/test_operate.py::test_a_job_that_was_cancelled_before_its_time_is_retried_at_that_time",
        [
            Change(
                "store/sql/job_retry.sql",
                "case state when 'cancelled' then greatest(run_at, rowlock.now()) else rowlock.now() end",
                "rowlock.now()",
            ),
        ],
    ),
    Mutant(
        "L9",
        "the embedded server ends with whoever came first",
        "tests/db/test_embedded.py::test_the_server_goes_on_for_those_who_are_left_and_ends_with_the_last",
        [
            Change("db/embedded/server.py", "if not self._users.join():", "if False:"),
        ],
    ),
    Mutant(
        "cli-idle-pool",
        "a worker takes an idle thread of the program's own pool for a stuck one, and skips atexit",
        "tests/cli/test_worker.py::test_an_idle_thread_of_a_pool_of_the_programs_own_is_not_taken_for_a_stuck_one",
        [Change("cli/worker.py", "    _let_pools_go()\n    deadline", "    deadline")],
    ),
    Mutant(
        "cli-terminate-whole-id",
        "a command takes whole ids only, and tables show parts of them",
        "tests/cli/test_jobs.py::test_a_part_of_an_id_is_enough",
        [
            Change(
                "cli/workflows/change.py",
                "        job_id = whole_id(app, job_id)\n        terminated",
                "        job_id = UUID(str(job_id))\n        terminated",
            )
        ],
    ),
    Mutant(
        "cli-narrow-note",
        "in a narrow terminal ids take the room of what went wrong",
        "tests/cli/test_workflows.py::test_in_a_narrow_terminal_the_note_is_there_and_ids_are_their_ends",
        [Change("cli/shared/tables.py", "return SHOWN if console().width < _WIDE else 36", "return 36")],
    ),
    Mutant(
        "signal-part-before-key",
        "a part of an id, however short, sends a signal to a workflow that nobody has named",
        "tests/cli/test_signal.py::test_a_part_of_an_id_is_tried_when_it_is_no_key",
        [Change("cli/shared/ids.py", 'len(typed.strip("…")) >= SHOWN and ', "")],
    ),
    Mutant(
        "log-delay-repr",
        "a line of the log says timedelta(…) of a delay",
        "tests/worker/test_run.py::test_a_success_is_logged_quietly_and_a_failure_with_its_error_and_the_job",
        [Change("worker/logs.py", "row.attempts, span(outcome.delay)", "row.attempts, repr(outcome.delay)")],
    ),
    Mutant(
        "log-asked",
        "the log says of a job that somebody cancelled: cancelled: asked",
        "tests/worker/test_run.py::test_outcomes_that_are_no_failure_are_logged_in_words",
        [Change("worker/logs.py", 'if reason == "asked" else', 'if reason == "never" else')],
    ),
    Mutant(
        "failure-our-frames",
        "a stored traceback begins with frames of the worker's own",
        "tests/worker/test_run.py::test_a_stored_traceback_begins_with_the_handler",
        [Change("model/failure.py", "    frames = _without_ours(frames)\n", "")],
    ),
    Mutant(
        "cli-rates",
        "one job in three minutes is 0.005/s",
        "tests/cli/test_text.py::test_a_rate_is_said_in_the_unit_that_says_it_best",
        [Change("cli/shared/text.py", 'f"{60 * value:.2g}/min" if value', 'f"{value:.2g}/s" if value')],
    ),
    Mutant(
        "cli-since-hint",
        "who looks for what failed in the last hour is shown what was created in it, and not told",
        "tests/cli/test_jobs.py::test_of_ended_jobs_since_is_told_from_ended_since",
        [Change("cli/shared/filters.py", " and not ENDED.isdisjoint(states):", " and False:")],
    ),
    Mutant(
        "cli-pause-waits",
        "a queue cannot be paused while history is slow, which is when it is needed",
        "tests/cli/test_queues.py::test_a_pause_does_not_wait_to_learn_whether_its_name_is_used",
        [Change("cli/shared/pause_options.py", "            if not is_slow(error):\n", "            if True:\n")],
    ),
    Mutant(
        "cli-since-of-verbs",
        "a retry of what failed in the last hours passes over older jobs that failed late, and nobody is told",
        "tests/cli/test_bulk.py::test_a_verb_that_changes_ended_jobs_tells_since_from_ended_since",
        [
            Change(
                "cli/jobs/bulk.py",
                "        typed.filters.explain_since(VERBS[verb].targets(job_filter))\n",
                "",
            ),
        ],
    ),
    Mutant(
        "cli-note-rank",
        "in a narrow terminal the note goes first",
        "tests/cli/test_jobs.py::test_in_a_narrow_terminal_the_error_is_there_and_ids_are_their_ends",
        [Change("cli/jobs/list.py", 'Column("note", least=24, rank=1)', 'Column("note", least=24, rank=9)')],
    ),
    Mutant(
        "find-ends",
        "the end of an id, which tables show, finds nothing",
        "tests/cli/test_jobs.py::test_a_part_of_an_id_is_enough",
        [
            Change(
                "store/sql/job_find.sql",
                "    where replace(live.id::text, '-', '') like '%' || :ending\n",
                "    where replace(live.id::text, '-', '') like :ending || '%'\n",
            )
        ],
    ),
    Mutant(
        "django-passed-on",
        "DjangoRowlock(listen_url=…) is taken and forgotten",
        "tests/contrib/test_django.py::test_what_is_said_of_the_database_is_passed_on",
        [Change("contrib/django/app.py", "                listen_url=listen_url,\n", "")],
    ),
    Mutant(
        "dashboard-extra",
        "an app that imports the dashboard without its packages is told of starlette alone",
        "tests/cli/test_dashboard.py::test_without_its_packages_a_sentence_says_which",
        [Change("dashboard/__init__.py", '.partition(".")[0] == "rowlock"', '.partition(".")[0] != "rowlock"')],
    ),
    Mutant(
        "drain-unseen",
        "a drain beside the test's open transaction finds no job, and the test believes it",
        "tests/testing/test_drain.py::test_jobs_in_an_open_transaction_of_the_apps_own_connection_are_not_taken_for_none",
        [Change("testing/drain.py", "    if queues:\n        raise", "    if False:\n        raise")],
    ),
    Mutant(
        "pause-unused",
        "the dashboard pauses a mistyped queue, and whoever did it believes that it has stopped",
        "tests/dashboard/test_queues.py::test_a_name_that_nobody_uses_is_paused_only_anyway",
        [Change("dashboard/actions/queues.py", "    if known is not None:\n", "    if False:\n")],
    ),
    Mutant(
        "pause-brandnew",
        "a queue that only a task of the app names cannot be paused before its first job",
        "tests/cli/test_queues.py::test_a_queue_that_only_a_task_of_the_app_names_can_be_paused",
        [Change("cli/shared/pause_options.py", ", *(task.spec.queue for task in app.tasks)}", "}")],
    ),
    Mutant(
        "django-lifespan-lasts",
        "what a lifespan does by the ORM leaves a connection and its thread for as long as the worker lives",
        "tests/contrib/test_django_connections.py::test_a_lifespan_has_a_thread_for_the_orm_as_it_begins_and_one_as_it_ends_and_none_between",
        [Change("contrib/django/app.py", "self.lifespan = partial(_Lifespan, self.lifespan)", "pass")],
    ),
    Mutant(
        "L10",
        "the traceback of a thread's time-out does not say where it hung",
        "tests/worker/test_timeouts.py::test_a_thread_that_times_out_is_told_counted_and_replaced",
        [
            Change("worker/call.py", "    if attempt.in_thread and attempt.thread is not None:\n", "    if False:\n"),
        ],
    ),
    Mutant(
        "L2",
        "a line of the log for each of 100,000 jobs whose code is missing",
        "tests/worker/test_run.py::test_jobs_of_a_task_without_code_are_a_line_and_then_a_count",
        [
            Change("worker/logs.py", "if group in self._more:", "if False:"),
        ],
    ),
    Mutant(
        "L3",
        "failed tries of steps are not logged",
        "tests/workflow/test_tries.py::test_each_failed_try_is_logged_with_its_error_and_the_last_one_with_its_traceback",
        [
            Change("workflow/step_run.py", "            if record.error is not None:\n", "            if False:\n"),
        ],
    ),
    Mutant(
        "W9",
        "a parked workflow counts as ready to an operator's verbs",
        "tests/workflow/test_operating.py::test_a_parked_workflow_is_parked_to_lists_counts_previews_and_verbs_alike",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "(waits_for in ('signal', 'children') or (state = 'ready' and run_at > rowlock.now()))",
                "waits_for in ('signal', 'children')",
            ),
        ],
    ),
    Mutant(
        "U4",
        "a worker whose own lease is over rescues the jobs of the living",
        "tests/store/test_presence.py::test_a_worker_whose_own_lease_is_over_finds_nobody_dead",
        [
            Change("store/sql/worker_look.sql", "and lease > rowlock.now())\n),\nclamped", ")\n),\nclamped"),
        ],
    ),
    Mutant(
        "U5",
        "a lock that anybody can take keeps everybody from rescuing",
        "tests/store/test_presence.py::test_no_lock_that_anybody_can_take_keeps_a_duty_from_being_done",
        [
            Change(
                "store/sql/duty_take.sql",
                "    where name = :duty\n",
                "    where name = :duty and pg_try_advisory_xact_lock(hashtextextended('rowlock.' || name, 0))\n",
            ),
        ],
    ),
    Mutant(
        "U6",
        "an enqueue walks every dead row of those that have parked",
        "tests/store/test_parking.py::test_an_enqueue_walks_no_more_dead_rows_however_often_workers_have_parked",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "\nwhere parkings.number > (select last_value - 400 from rowlock.parking_number);",
                ";",
            ),
        ],
    ),
    Mutant(
        "U7",
        "nobody looks from the bottom for those whose looks are dear",
        "tests/worker/test_lanes.py::test_a_job_below_the_floors_of_all_is_found_by_the_one_that_looks_for_them",
        [Change("worker/upkeep.py", "        connection.run(queues.tell())\n", "        pass\n")],
    ),
    Mutant(
        "U1",
        "parts of events are made no further ahead than jobs are kept",
        "tests/db/test_partitions.py::test_parts_of_events_reach_a_month_and_a_week_however_short_jobs_are_kept",
        [Change("store/schema.py", "return longest if self.stays is None else self.stays", "return longest")],
    ),
    Mutant(
        "U2",
        "an event whose part is missing stops the rescue that writes it",
        "tests/store/test_rescue.py"
        "::test_where_nobody_has_made_parts_of_events_jobs_are_rescued_and_cancelled_and_pauses_end",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "            then 'infinity'\n        else day",
                "            then day\n        else day",
            ),
        ],
    ),
    Mutant(
        "U3",
        "history is dropped by the database's date alone",
        "tests/db/test_partitions.py::test_nothing_is_dropped_by_the_clock_of_the_database_alone",
        [Change("db/partitions.py", "    return min(theirs, ours)", "    return theirs")],
    ),
    Mutant(
        "W10",
        "a workflow is terminated by what was recorded before its row was locked",
        "tests/workflow/test_terminate.py::test_what_is_recorded_while_it_waits_for_the_row_goes_into_history_too",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "where one.id = target for update;\n        if not found",
                "where one.id = target;\n        if not found",
            ),
        ],
    ),
    Mutant(
        "V1",
        "the command line prints the passwords that the dashboard masks",
        "tests/cli/test_jobs.py::test_secrets_are_masked_unless_they_are_asked_for",
        [
            Change(
                "cli/shared/output.py",
                "    return value if reveal else mask",
                "    return value if reveal or True else mask",
            )
        ],
    ),
    Mutant(
        "V2",
        "a worker that begins anew again and again looks well",
        "tests/test_doctor.py::test_a_fault_among_the_rows_turns_its_lines_and_no_others",
        [
            Change(
                "doctor/workers.py",
                "(worker for worker in live if worker.restarts)",
                "(worker for worker in live if worker.restarts > 99)",
            ),
        ],
    ),
    Mutant(
        "notify-when-full",
        "one session that takes no notifications makes every commit fail",
        "tests/faults/test_notify_queue.py::test_jobs_are_enqueued_run_retried_and_waited_for_while_nobody_can_be_notified",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "pg_notification_queue_usage() < 0.5",
                "pg_notification_queue_usage() < 2",
            )
        ],
    ),
    Mutant(
        "notify-is-their-fault",
        "jobs are refused because the queue of notifications is full",
        "tests/faults/test_notify_queue.py::test_jobs_are_enqueued_run_retried_and_waited_for_while_nobody_can_be_notified",
        [Change("db/errors.py", '"PreCommit_Notify": _AGAIN', '"PreCommit_Notify": _ODD')],
    ),
    Mutant(
        "memory-costs-jobs",
        "jobs fail as refused while the server is out of memory",
        "tests/worker/test_refused.py::test_a_server_that_is_out_of_memory_costs_no_job_however_long_it_lasts",
        [Change("worker/refused.py", "return inf if error.unclear else _MOST_TRIES", "return _MOST_TRIES")],
    ),
    Mutant(
        "memory-sets-aside",
        "jobs are set aside one after the other while the server is out of memory",
        "tests/worker/test_refused.py::test_while_no_job_can_be_claimed_none_is_set_aside",
        [
            Change(
                "worker/refused.py", "for job_id, fault in doubtful if found else ():", "for job_id, fault in doubtful:"
            )
        ],
    ),
    Mutant(
        "failing-in-silence",
        "a worker that cannot settle for long looks well",
        "tests/worker/test_refused.py::test_what_a_worker_tries_again_and_again_stands_in_its_row_until_it_works",
        [Change("worker/registration.py", "        if seconds < _FAILING_FOR:", "        if True:")],
    ),
    Mutant(
        "W11",
        "what a running old worker has refused goes back and forth between the workers",
        "tests/workflow/test_versions.py::test_what_running_old_workers_refuse_goes_to_newer_ones_once_and_never_back",
        [
            Change(
                "store/sql/job_take_up.sql",
                "where peer.started_at >= (select me.started_at from me)",
                "where peer.id = :worker::uuid",
            ),
        ],
    ),
    Mutant(
        "Y4",
        "history has a partition for each of 400 days",
        "tests/db/test_partitions.py::test_history_is_kept_by_the_week_where_jobs_are_kept_for_more_than_60_days_and_by_the_day_again_where_not",
        [Change("store/schema.py", "or longest > LONGEST_BY_DAY", "or longest > 10 * LONGEST_BY_DAY")],
    ),
    Mutant(
        "Y5",
        "a new week of history overlaps the days that are there",
        "tests/db/test_partitions.py::test_history_is_kept_by_the_week_where_jobs_are_kept_for_more_than_60_days_and_by_the_day_again_where_not",
        [
            Change(
                "store/schema.py",
                "if by_week and covered.isdisjoint(_days(week, week + WEEK)):",
                "if by_week and day not in covered:",
            )
        ],
    ),
    Mutant(
        "Y6",
        "sessions for which somebody has called setseed() make the same tokens",
        "tests/store/test_claim.py::test_tokens_differ_in_sessions_of_one_seed_and_in_claims_of_one_job",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "int8send(uuid_hash_extended(job, claim))",
                "int8send((random() * 4503599627370496)::bigint)",
            )
        ],
    ),
    Mutant(
        "Y7",
        "a pooler's connections are cleared of what others have prepared there",
        "tests/faults/test_poolers.py::test_what_others_have_prepared_on_the_poolers_connections_stays_there",
        [Change("db/handler_connections.py", '_PING = "select 1"', '_PING = "discard all"')],
    ),
    Mutant(
        "Y8",
        "history has no replica identity, so that nothing can be deleted from it once it is published",
        "tests/store/test_publication.py::test_jobs_are_run_retried_and_deleted_while_all_tables_are_published",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "    primary key (id, expires_on)\n) partition by range (expires_on);\n\n-- What people look for",
                "    unique (id, expires_on)\n) partition by range (expires_on);\n\n-- What people look for",
            ),
        ],
    ),
    Mutant(
        "Y1",
        "a migration that waits for one reader stops every claim",
        "tests/db/test_migrating.py::test_a_migration_that_finds_no_moment_changes_nothing_and_says_who_is_in_its_way",
        [Change("db/migrate.py", 'f"{int(_LOCK_TIMEOUT * 1000)}ms"', '"0"')],
    ),
    Mutant(
        "Y2",
        "a worker claims on from a schema that was migrated to what it cannot use",
        "tests/worker/test_unfit.py::test_a_worker_that_cannot_use_the_schema_any_more_ends_what_it_runs_and_claims_again_when_it_can",
        [Change("worker/claim.py", "if self._unfit():", "if self._unfit() and not self:")],
    ),
    Mutant(
        "Y3",
        "a statement that was prepared before a migration fails on that connection for ever",
        "tests/db/test_migrating.py::test_a_process_that_goes_on_asks_anew_what_was_prepared_for_the_tables_as_they_were",
        [Change("db/errors.py", '"RevalidateCachedQuery"', '"RevalidateQuery"')],
    ),
    Mutant(
        "P6",
        "a job that became due just after a claim is taken for locked, and found a second later",
        "tests/worker/test_life.py::test_what_is_due_again_before_the_next_look_is_found_when_it_is_due",
        [Change("worker/claim.py", "if -wait < time.monotonic() - self._claimed_at:", "if self._claimed_at < 0:")],
    ),
    Mutant(
        "P7",
        "a worker learns by chance of a job that is due within a second",
        "tests/worker/test_life.py::test_what_is_due_again_before_the_next_look_is_found_when_it_is_due",
        [Change("store/sql/job_put.sql", "<= rowlock.now() + interval '1 second'", "<= rowlock.now()")],
    ),
    Mutant(
        "P8",
        "a worker learns by chance of a job that is tried again within a second",
        "tests/worker/test_life.py::test_what_is_due_again_before_the_next_look_is_found_when_it_is_due",
        [
            Change(
                "store/sql/job_return.sql",
                "coalesce(sent.delays[back.place] <= interval '1 second', true)",
                "sent.delays[back.place] is null",
            )
        ],
    ),
    Mutant(
        "P9",
        "each channel of a worker's queues takes a round trip of its own",
        "tests/faults/test_listeners.py::test_a_job_enqueued_while_the_listener_was_away_is_found_when_it_is_back",
        [
            Change(
                "db/worker_connection.py",
                "            await connection.execute(listens, prepare=False)\n",
                "            for one in listens.as_string().split('; '):\n                await connection.execute(one)\n",
            ),
        ],
    ),
    Mutant(
        "P1",
        "async enqueues share a statement however large it becomes",
        "tests/db/test_group.py::test_large_arguments_of_many_callers_are_sent_in_bounded_statements",
        [Change("db/enqueue_batch.py", "if size > LARGEST_STATEMENT:", "if size < 0:")],
    ),
    Mutant(
        "P2",
        "a text that cannot be encoded fails everyone in its group",
        "tests/db/test_group.py::test_one_bad_row_fails_its_own_caller_alone",
        [
            Change(
                "db/enqueue_batch.py",
                "except (psycopg.Error, UnicodeError) as error:",
                "except psycopg.Error as error:",
            )
        ],
    ),
    Mutant(
        "P3",
        "host names are looked up in the executor that handlers can fill, so that a worker cannot reconnect",
        "tests/worker/test_liveness.py::test_a_worker_reconnects_by_name_while_handlers_fill_the_executor_of_its_loop",
        [Change("db/session.py", "await with_host_addresses(server.conninfo)", "server.conninfo")],
    ),
    Mutant(
        "P4",
        "of a few jobs with large arguments some are enqueued and others are not",
        "tests/test_enqueue.py::test_a_few_jobs_with_large_arguments_are_all_there_or_none",
        [
            Change(
                "store/enqueue.py",
                "        or sum(len(job.args) for job in jobs) > LARGEST_STATEMENT\n",
                "",
            ),
        ],
    ),
    Mutant(
        "P5",
        "on a connection in pipeline mode a job is inserted, and its caller gets an error",
        "tests/db/test_borrowed.py::test_a_connection_in_pipeline_mode_is_refused_before_anything_is_sent",
        [Change("db/borrowed/psycopg.py", "        raise in_pipeline()", "        pass")],
    ),
    Mutant(
        "V3",
        "a worker does not say that its event loop is blocked",
        "tests/test_doctor.py::test_a_worker_whose_event_loop_is_blocked_says_so_with_its_renewal",
        [Change("worker/loop_watchdog.py", "        if not self._is_blocked or", "        if True or")],
    ),
    Mutant(
        "V4",
        "a worker whose process is stopped looks well until its lease is over",
        "tests/test_doctor.py::test_a_worker_whose_process_is_stopped_is_told_of_within_its_lease",
        [Change("model/stats/worker_view.py", "self.lease_left < self.lasts / 2", "self.lease_left < self.lasts / 99")],
    ),
    Mutant(
        "V5",
        "nobody is told who keeps the workers from a duty",
        "tests/test_doctor.py::test_a_session_that_keeps_workers_from_a_duty_is_the_first_line",
        [Change("store/sql/duty_holders.sql", "('RowShareLock', 'RowExclusiveLock')", "('RowExclusiveLock')")],
    ),
    Mutant(
        "V6",
        "slots that were missed while a worker lived look like those of a time without workers",
        "tests/test_doctor.py::test_a_fault_among_the_rows_turns_its_lines_and_no_others",
        [Change("store/sql/schedule_check.sql", "and firing.slot > (select min(started_at) from living)", "")],
    ),
    Mutant(
        "D12",
        "a login leaves no trace in the audit",
        "tests/dashboard/test_security_login.py::test_logins_logouts_and_wrong_tokens_are_in_the_audit_and_never_more_than_are_counted",
        [Change("dashboard/app.py", "        await self._logins.write(events)\n", "")],
    ),
    Mutant(
        "D13",
        "what is typed into a field of date and time is taken for UTC",
        "tests/dashboard/test_browser.py::test_what_is_typed_and_what_a_mark_says_is_in_the_readers_zone_too",
        [Change("dashboard/static/forms.js", "zoned(form, button)", "new URLSearchParams(new FormData(form, button))")],
    ),
    Mutant(
        "scale-held-walk",
        "under a held snapshot a worker walks over all that it ever claimed to see what it holds",
        "tests/store/test_plans.py::test_under_a_held_snapshot_what_a_worker_holds_is_found_without_a_walk_over_all_that_it_ever_claimed",
        [Change("store/sql/worker_held.sql", "started_at >= (select moment from since)", "started_at is not null")],
    ),
    Mutant(
        "suspect-by-chance",
        "a worker that has set suspects aside itself looks for them ten seconds later",
        "tests/worker/test_suspects.py::test_suspects_that_come_back_as_ready_are_set_aside_at_once",
        [Change("worker/prefetch.py", "            self.suspect_set_aside()\n", "            pass\n")],
    ),
    Mutant(
        "scale-held-plan",
        "a plan that was made for an empty table walks over all jobs to see what a worker holds",
        "tests/store/test_plans.py::test_no_statement_reads_all_jobs_whatever_was_known_when_it_was_planned",
        [
            Change(
                "store/sql/worker_held.sql",
                "    select id, token from seen union select id, token from claimed\n",
                "    select id, token from seen union select id, token from rowlock.jobs\n"
                "    where state = 'running' and worker = :worker::uuid and started_at >= (select moment from since)\n",
            )
        ],
    ),
    Mutant(
        "scale-endings-plan",
        "a plan that was made for an empty table reads all jobs to see how one has ended",
        "tests/store/test_plans.py::test_no_statement_reads_all_jobs_whatever_was_known_when_it_was_planned",
        [
            Change(
                "store/sql/job_endings.sql",
                "(select true from rowlock.jobs as job where job.id = asked.id limit 1) is null",
                "not exists (select from rowlock.jobs as job where job.id = asked.id)",
            )
        ],
    ),
    Mutant(
        "scale-hand-back-walk",
        "under a held snapshot a worker that reconnects walks over all that it ever claimed",
        "tests/store/test_plans.py::test_under_a_held_snapshot_what_a_worker_holds_is_found_without_a_walk_over_all_that_it_ever_claimed",
        [Change("store/sql/job_hand_back.sql", "started_at >= (select moment from since)", "started_at is not null")],
    ),
    Mutant(
        "scale-clock-back",
        "what was claimed after the database's clock was set back is not held",
        "tests/store/test_plans.py::test_what_was_claimed_before_the_clock_was_set_back_and_after_is_found",
        [
            Change(
                "store/sql/worker_held.sql",
                "when :since::timestamptz + interval '1 minute' <= rowlock.now() then",
                "when :since is not null then",
            )
        ],
    ),
    Mutant(
        "scale-take-up-walk",
        "every worker walks over all jobs that it has refused",
        "tests/store/test_plans.py::test_taking_up_reads_none_of_the_jobs_that_this_worker_refuses",
        [Change("store/sql/job_take_up.sql", "order by 1, 2, 3, 4\n", "order by 1, 2, 3, 4, job.id\n")],
    ),
    Mutant(
        "scale-queues-walk",
        "a worker of all queues walks over what is dead in them, each second",
        "tests/store/test_plans.py::test_a_look_for_new_queues_walks_none_of_those_that_are_known",
        [Change("store/sql/queue_used.sql", "job.queue < named.next", "job.queue <> named.next")],
    ),
    Mutant(
        "scale-return-place",
        "a stale attempt in the batch says what becomes of a job that is returned",
        "tests/store/test_settle.py::test_two_attempts_of_one_job_in_one_return_end_as_the_current_one_says",
        [Change("store/sql/job_return.sql", "else array_position((select tokens from sent), job.token)", "else last")],
    ),
    Mutant(
        "scale-truncate",
        "vacuum locks out everybody to cut off the table of signals after a flood",
        "tests/store/test_schema.py::test_vacuum_locks_nobody_out_to_cut_off_what_comes_and_goes_with_jobs",
        [
            Change(
                "store/migrations/0001_jobs.sql",
                "    vacuum_truncate = off, toast.vacuum_truncate = off, autovacuum",
                "    vacuum_truncate = off, autovacuum",
            ),
        ],
    ),
    Mutant(
        "broken-suspect",
        "a suspect that cannot be claimed keeps every worker of its queue from every other job",
        "tests/worker/test_broken_rows.py::test_a_suspect_that_cannot_be_claimed_is_set_aside_and_all_others_run",
        [
            Change(
                "worker/claim.py",
                "            rows = await self._link.run(query, tries=TRIES)\n        except Refused as error:  # other",
                "            rows = await self._link.run(query)\n        except ArithmeticError as error:  # other",
            )
        ],
    ),
    Mutant(
        "broken-suspect-stays",
        "a suspect that cannot be claimed stays where it is, and the one that has been due the longest",
        "tests/worker/test_broken_rows.py::test_a_suspect_that_cannot_be_claimed_is_set_aside_and_all_others_run",
        [
            Change(
                "store/sql/job_set_aside.sql",
                "(state = 'ready' or waits_for in ('suspect', 'code'))",
                "state = 'ready'",
            )
        ],
    ),
    Mutant(
        "broken-orphan",
        "a job whose rescue fails by anything but its data keeps all of its batch running for ever",
        "tests/worker/test_broken_rows.py::test_a_job_that_cannot_be_rescued_keeps_none_of_its_batch_running",
        [
            Change(
                "db/thread_connection.py",
                "with self.blaming(), connection.transaction():",
                "with self._reaching(), connection.transaction():",
            )
        ],
    ),
    Mutant(
        "broken-like-a-partition",
        "what a trigger refuses is taken for a missing partition, and not taken apart",
        "tests/worker/test_broken_rows.py::test_a_job_that_cannot_be_rescued_keeps_none_of_its_batch_running",
        [
            Change(
                "worker/halve.py",
                "            self._try(connection, batch)\n        else:",
                "            pass\n        else:",
            )
        ],
    ),
    Mutant(
        "broken-for-good",
        "orphans that could not be rescued while the server was ill are never rescued by this worker",
        "tests/worker/test_broken_rows.py::test_while_no_job_can_be_rescued_none_is_left_out_for_good",
        [Change("worker/halve.py", "is_certain = not (error.unclear or error.lacks_partition)", "is_certain = True")],
    ),
    Mutant(
        "broken-schedule",
        "a schedule that cannot be fired keeps all that are due with it from being fired",
        "tests/worker/test_broken_rows.py::test_a_schedule_that_cannot_be_fired_keeps_no_other_from_it",
        [
            Change(
                "worker/schedule.py",
                "            self._halver.take_apart(connection, batch, error)\n",
                "            log.warning(error)\n",
            )
        ],
    ),
    Mutant(
        "broken-expired",
        "an expired job that cannot be ended keeps all others from being ended",
        "tests/worker/test_broken_rows.py::test_an_expired_job_that_cannot_be_ended_keeps_no_other_from_it",
        [Change("worker/halve.py", "            with connection.blaming():\n", "            if connection:\n")],
    ),
    Mutant(
        "failing-chore-once",
        "a chore that fails for hours is told of once",
        "tests/worker/test_failing.py::test_a_chore_that_goes_on_failing_is_told_of_again_until_it_works",
        [Change("worker/lease.py", "if now - chore.logged_at >= _LOG_EVERY:", "if now - chore.logged_at >= inf:")],
    ),
    Mutant(
        "failing-chore-unseen",
        "a worker that cannot rescue, fire or resume anything looks well",
        "tests/worker/test_failing.py::test_the_chore_that_has_been_failing_the_longest_stands_in_its_workers_row_until_it_works",
        [Change("worker/incarnation.py", "failing = [*links, self._renewer.fault]", "failing = links")],
    ),
    Mutant(
        "failing-statement-once",
        "a statement that fails for hours is told of once",
        "tests/worker/test_failing.py::test_a_statement_that_goes_on_failing_is_told_of_again",
        [
            Change(
                "db/worker_connection.py", "if now - fault.told >= _TELL_EVERY else", "if now - fault.told >= inf else"
            )
        ],
    ),
    Mutant(
        "broken-mark",
        "a job that cannot be marked as begun keeps its worker from settling anything",
        "tests/worker/test_broken_asides.py::test_a_job_that_cannot_be_marked_as_begun_runs_and_others_are_settled",
        [Change("worker/progress.py", " for row, since in begun]), tries=_TRIES)", " for row, since in begun]))")],
    ),
    Mutant(
        "broken-child",
        "a child that cannot be cancelled keeps its worker from settling anything",
        "tests/worker/test_broken_asides.py::test_a_child_that_cannot_be_cancelled_keeps_neither_its_workflow_nor_the_others",
        [Change("worker/step_recorder.py", "actor=self._actor), tries=_tries(children))", "actor=self._actor))")],
    ),
    Mutant(
        "broken-stray",
        "a claim that cannot be given back keeps all others that were not answered",
        "tests/worker/test_broken_asides.py::test_a_claim_that_cannot_be_given_back_keeps_no_other_from_it",
        [Change("worker/reconcile.py", "worker=self._worker), tries=_TRIES)", "worker=self._worker))")],
    ),
    Mutant(
        "broken-parkings",
        "a lock on the table of parked workers stops all claims",
        "tests/worker/test_broken_asides.py::test_jobs_are_claimed_though_nobody_can_park",
        [Change("worker/queues.py", "numbers = await self._link.try_once(", "numbers = await self._link.run(")],
    ),
    Mutant(
        "slow-search-again-and-again",
        "a look for new queues that is too slow is repeated for ever, and nothing is claimed",
        "tests/worker/test_queues.py::test_a_worker_of_all_queues_claims_though_its_look_for_new_ones_takes_too_long",
        [Change("worker/queues.py", "self._link.try_once(queue_store.used", "self._link.run(queue_store.used")],
    ),
    Mutant(
        "parks-for-ever",
        "more than 200 idle workers never cease to park, because of one another",
        "tests/store/test_parking.py::test_idle_workers_do_not_park_anew_because_of_one_another_however_many_they_are",
        [Change("store/sql/worker_park.sql", "where not :renews::boolean or exists (", "where true or exists (")],
    ),
    Mutant(
        "huge-claims",
        "a claim of a thousand jobs with 1 MiB of arguments each takes a gigabyte, and is late again and again",
        "tests/worker/test_claims.py::test_a_claim_brings_no_more_jobs_than_their_arguments_allow",
        [Change("worker/run.py", "        self._ahead.measure(rows)\n", "")],
    ),
    Mutant(
        "old-backlog",
        "where a look from the bottom takes too long, a worker that begins never claims what was due before",
        "tests/worker/test_life.py"
        "::test_jobs_from_before_a_worker_began_are_claimed_though_its_look_from_the_bottom_takes_too_long",
        [Change("worker/claim.py", "                self._backlog.begin()\n", "")],
    ),
    Mutant(
        "hints-for-one-claim",
        "of a backlog below the floors of all, each look for the fleet lets a worker claim no more than once",
        "tests/worker/test_lanes.py::test_what_others_say_is_followed_until_a_claim_finds_no_more_there",
        [
            Change(
                "worker/queues.py",
                "            self._hints = {lane: places",
                "            self._hints = {} and {lane: places",
            )
        ],
    ),
    Mutant(
        "broken-outlook",
        "a worker that cannot ask when the next job is due claims nothing",
        "tests/worker/test_broken_asides.py::test_jobs_are_claimed_though_nobody_can_say_when_the_next_is_due",
        [Change("worker/claim.py", "within=_WITHIN), tries=TRIES)", "within=_WITHIN))")],
    ),
    Mutant(
        "broken-refused",
        "a job that cannot be taken up keeps all that wait for the same code from it",
        "tests/worker/test_broken_rows.py::test_a_job_that_cannot_be_taken_up_is_set_aside_and_the_others_run",
        [Change("worker/claim.py", "limit=min(room, SINGLY), worker=worker)", "limit=0, worker=worker)")],
    ),
    Mutant(
        "D14",
        "the overview cannot be read while somebody has locked the jobs",
        "tests/dashboard/test_overview.py::test_who_has_locked_the_jobs_comes_first_though_nothing_else_can_be_read",
        [
            Change(
                "dashboard/pages/overview.py",
                'in_time("schedules", _schedules(context), unknown)',
                "_schedules(context)",
            )
        ],
        deep="each look at what is locked is given up after two seconds",
    ),
    Mutant(
        "waits-count-as-crashes",
        "a worker's death counts as a crash for what it had claimed ahead and not begun",
        "tests/store/test_rescue.py::test_a_death_costs_only_what_had_begun",
        [
            Change(
                "store/sql/job_rescue.sql",
                "            when orphans.begun is not true then orphans.crashes\n",
                "",
            ),
        ],
    ),
    Mutant(
        "progress-does-not-count",
        "a workflow that records a step between every two deaths of its workers ends as poison",
        "tests/store/test_rescue.py::test_a_workflow_that_gets_on_is_not_what_workers_die_of",
        [Change("store/sql/job_rescue.sql", ") then 1\n", ") then orphans.crashes + 1\n")],
    ),
    Mutant(
        "every-worker-looks",
        "every worker reads who is present, although another has done so a moment ago",
        "tests/store/test_presence.py::test_where_another_has_just_looked_a_worker_finds_nothing_and_reads_nothing",
        [
            Change(
                "store/sql/worker_look.sql",
                "where now - before not between 0 and :pause::bigint",
                "where (now - before not between 0 and :pause::bigint or true)",
            )
        ],
    ),
    Mutant(
        "large-record-holds-up",
        "a workflow whose record is large is folded while all other outcomes wait for it",
        "tests/worker/test_refused.py::test_a_workflow_with_a_large_record_ends_where_nobody_waits_for_it",
        [
            Change(
                "worker/settle.py",
                "        large = [one for one in ended if self.recorder.size(one[0]) > _LARGE_RECORD]\n",
                "        large: list[Finished] = []\n",
            ),
        ],
    ),
    Mutant(
        "no-partition-is-the-jobs-fault",
        "a job for which there is no partition yet fails, as if its outcome were refused",
        "tests/worker/test_refused.py::test_jobs_without_a_partition_hold_up_no_other",
        [Change("worker/refused.py", "if not error.lacks_partition and (error.certain", "if (error.certain")],
    ),
    Mutant(
        "step-after-the-lease",
        "a step begins although the worker's lease is over, and another runs it at the same time",
        "tests/workflow/test_undo_to_its_end.py::test_a_step_does_not_begin_when_the_lease_is_over",
        [Change("workflow/execution.py", " or not self.environment.store.is_ours():", ":")],
    ),
    Mutant(
        "migration-that-cancels",
        "a function that carries a workflow over and raises Cancel or SystemExit is told of as a fault of the engine's",
        "tests/workflow/test_changes.py::test_a_migration_that_fails_blocks_it_and_nothing_is_lost",
        [
            Change(
                "workflow/attempt.py",
                "except BaseException as error:  # the functions are",
                "except Exception as error:  # the functions are",
            )
        ],
    ),
    Mutant(
        "stopped-clients-keep-sessions",
        "a process that is stopped while a worker writes to it keeps vacuum from the dead rows of the whole database",
        "tests/worker/test_refused.py::test_the_server_gives_up_a_session_of_ours_whose_client_reads_nothing",
        [Change("db/session.py", '    "tcp_user_timeout": "60s",\n', "")],
    ),
    Mutant(
        "settle-without-bounds",
        "a thousand large results are settled in one statement, which the server has no memory for",
        "tests/worker/test_refused.py::test_a_settle_takes_no_more_than_a_statement_carries",
        [Change("worker/settle.py", "room -= size_of(self._finished[0][1])", "room -= 0")],
    ),
    Mutant(
        "record-without-bounds",
        "a thousand large steps are recorded in one statement, which the server has no memory for",
        "tests/worker/test_refused.py::test_what_workflows_remember_goes_into_statements_of_no_more_than_so_much",
        [Change("worker/step_recorder.py", "rows - more, characters - longer", "rows - more, characters")],
    ),
    Mutant(
        "pool-looks-then-takes",
        "two threads that find one idle connection take it at once, and one gets an IndexError",
        "tests/db/test_pool.py::test_a_connection_that_another_thread_takes_first_is_none",
        [
            Change(
                "db/pool.py",
                "    try:\n        return idle.pop()\n    except IndexError:\n        return None\n",
                "    return idle.pop() if idle else None\n",
            ),
        ],
    ),
    Mutant(
        "waits-for-a-thread-and-runs",
        "a sync handler, or a step, that waited for a thread begins after its attempt was told that it is over",
        "tests/worker/test_runner.py::test_what_waited_for_a_thread_while_its_attempt_came_to_an_end_does_not_run",
        [
            Change(
                "worker/call.py",
                "            if attempt.stopped or attempt.over or attempt.lost is not None:  # while it waited for a thread\n"
                "                return None, asyncio.CancelledError()\n",
                "",
            ),
        ],
    ),
    Mutant(
        "lost-attempts-stay",
        "a worker keeps what it knew of every workflow that was taken away from it, for as long as it lives",
        "tests/worker/test_refused.py::test_of_a_workflow_that_was_taken_away_its_worker_keeps_nothing",
        [Change("worker/run.py", "            self._memory.forget([row])", "            pass")],
    ),
    Mutant(
        "number-of-a-closed-socket",
        "a link removes its reader by the number of a socket that is closed, and may hit another one that has it now",
        "tests/db/test_deadlines.py::test_a_link_that_is_broken_while_it_rests_lets_go_of_the_number_of_its_socket_before_the_socket",
        [
            Change(
                "db/worker_connection.py",
                "            self._stop_reading()  # at once: libpq has closed the socket, and the next one that is opened has its number\n"
                "            connection.pgconn.finish()\n",
                "            connection.pgconn.finish()\n            self._stop_reading()\n",
            ),
        ],
    ),
    Mutant(
        "begins-anew-without-a-pause",
        "a worker that fails at once begins anew as fast as it can, with three connections each time",
        "tests/worker/test_life.py::test_an_incarnation_whose_loop_has_failed_is_followed_after_a_pause",
        [Change("worker/worker.py", "                    await self._pause(restarts)\n", "")],
    ),
    Mutant(
        "slow-look-again-and-again",
        "a look from the bottom that is too slow is taken again before each claim",
        "tests/worker/test_life.py::test_a_look_from_the_bottom_that_takes_too_long_is_given_up_and_claims_go_on",
        [Change("worker/claim.py", "            if not error.slow:  #", "            if True:  #")],
    ),
    Mutant(
        "renewals-wait-for-standbys",
        "a synchronous standby that hangs costs every worker its lease, and every job its attempt",
        "tests/store/test_presence.py::test_a_renewal_waits_for_no_standby_and_what_its_session_says_next_does_again",
        [
            Change(
                "store/sql/worker_renew.sql",
                "    pg_catalog.set_config('synchronous_commit', 'local', true);",
                "    null;",
            )
        ],
    ),
    Mutant(
        "renewals-loosen-the-session",
        "whatever the renewing session writes after a renewal waits for no standby either",
        "tests/store/test_presence.py::test_a_renewal_waits_for_no_standby_and_what_its_session_says_next_does_again",
        [
            Change(
                "store/sql/worker_renew.sql",
                "'synchronous_commit', 'local', true)",
                "'synchronous_commit', 'local', false)",
            )
        ],
    ),
    Mutant(
        "retry-late-by-the-clocks-step",
        "a retry that was written while the database's clock was ahead stays late by what it was set back by",
        "tests/worker/test_clock_steps.py::test_a_retry_that_was_written_while_the_clock_was_ahead_is_brought_forward_though_its_attempt_began_before",
        [
            Change(
                "store/sql/job_hasten.sql",
                "job.created_at, job.started_at, (job.errors[cardinality(job.errors)] ->> 'ended_at')::timestamptz\n",
                "job.created_at, job.started_at\n",
            ),
        ],
    ),
    Mutant(
        "park-late-by-the-clocks-step",
        "a workflow that parked while the database's clock was ahead stays late by what it was set back by",
        "tests/worker/test_clock_steps.py::test_a_workflow_that_parked_while_the_clock_was_ahead_is_brought_forward_though_its_attempt_began_before",
        [Change("store/sql/job_hasten.sql", "or job.wakes_at is not null and exists (", "or false and exists (")],
    ),
    Mutant(
        "started-by-the-clock",
        "a job that nobody has claimed is shown as started since the clock was set back",
        "tests/worker/test_clock_steps.py::test_a_job_that_nobody_has_started_is_not_shown_as_started_after_it_was_brought_forward",
        [
            Change(
                "store/sql/job_hasten.sql",
                "    started_at = case when started_at > rowlock.now() then rowlock.now() else started_at end,\n    expires_at",
                "    started_at = least(started_at, rowlock.now()),\n    expires_at",
            ),
        ],
    ),
    Mutant(
        "late-for-new-workers",
        "jobs stay late for hours when no worker was there to see that the clock was set back",
        "tests/worker/test_clock_steps.py::test_a_worker_that_starts_after_the_clock_was_set_back_brings_forward_what_is_late",
        [Change("worker/upkeep.py", "        if not self._has_compared:\n            self._compare(connection)\n", "")],
    ),
)
