"""Decisions about plans in a real Chromium: what is typed stays, one action starts once, and what changed meanwhile is shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from playwright.sync_api import Browser, Page, Route, expect
from sqlalchemy import select

from federator.apply.plan_decisions import decide_plan
from federator.planning.plan import Plan
from federator.store import plans, requests, run_stages, runs
from federator.store import tables as t
from tests.fixtures.index_content import record_change
from tests.fixtures.waiting import wait_until
from tests.web.conftest import Service

OpenPage = Callable[[str], Page]
_COMMENT = "Comment, kept in the audit log"


def test_apply_the_others_starts_once_and_keeps_the_comment(open_page: OpenPage, service: Service) -> None:
    page = open_page(f"plans/{service.plan}")
    sent: list[Route] = []
    page.route("**/apply", lambda route: sent.append(route))
    page.get_by_label(_COMMENT).fill("ask the owner first")
    button = page.get_by_role("button", name="Apply the others")
    with page.expect_request("**/apply"):
        button.dblclick()
    expect(button).to_be_disabled()
    expect(page.get_by_role("button", name="Reject")).to_be_disabled()
    assert len(sent) == 1
    sent[0].continue_()
    expect(page.get_by_role("region", name="Application")).to_contain_text("It starts when the worker is free")
    with service.index.write() as connection:
        (queued,) = requests.list_queued(connection, requests.RUN_KINDS)
        requests.set_request_state(connection, queued.id, requests.RUNNING, run_id=service.run.id)
    runs.finish_run(service.index, service.run, "ok", summary={})
    expect(page.get_by_role("region", name="Result")).to_be_visible()
    expect(page.get_by_label(_COMMENT)).to_have_value("ask the owner first")


def test_a_refused_application_shows_what_the_plan_has_become(browser: Browser, service: Service) -> None:
    # Without ``open_page``: the browser's console has an error about the refusal.
    page = browser.new_page(base_url=service.url)
    page.goto(f"/ui/plans/{service.plan}")
    page.get_by_label(_COMMENT).fill("checked")

    def outdate(route: Route) -> None:
        with service.index.write() as connection:
            connection.execute(t.plan.update().where(t.plan.c.digest == service.plan).values(state="outdated"))
        route.continue_()

    page.route("**/apply", outdate)
    page.get_by_role("button", name="Approve and apply (1 removal)").click()
    expect(page.locator("#announcer")).to_contain_text("create a new plan")
    expect(page.locator(".title")).to_contain_text("outdated")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    page.close()


def test_a_decision_that_another_person_made_meanwhile_stays(browser: Browser, service: Service) -> None:
    page = browser.new_page(base_url=service.url)

    def reject(route: Route) -> None:
        decide_plan(service.index, service.plan, "rejected", actor="ben", comment="the owner moves it")
        route.continue_()

    page.route("**/approve", reject)
    page.goto(f"/ui/plans/{service.plan}")
    page.get_by_label(_COMMENT).fill("checked")
    page.get_by_role("button", name="Approve and apply (1 removal)").click()
    expect(page.locator("#announcer")).to_contain_text("was rejected by ben at ")
    expect(page.get_by_role("region", name="Decision")).to_contain_text("the owner moves it")
    with service.index.read() as connection:
        assert plans.get_plan(connection, service.plan).state == "rejected"
        assert requests.list_queued(connection, requests.RUN_KINDS) == []
    page.close()


def test_a_shortened_digest_leads_to_its_plan(open_page: OpenPage, service: Service) -> None:
    page = open_page(f"plans/{service.plan[:8]}")
    expect(page.get_by_role("heading", level=1, name="Plan for nightly")).to_be_visible()
    expect(page.get_by_role("button", name="Reject")).to_be_visible()
    page = open_page("plans/0000000")
    expect(page.get_by_role("alert")).to_have_text("No plan has a digest that begins with 0000000")


def test_a_change_that_failed_can_be_applied_again(open_page: OpenPage, service: Service) -> None:
    with service.index.read() as connection:
        plan = Plan.from_json(plans.get_plan(connection, service.plan).content)
    record_change(service.index, service.plan, plan.changes[1], state="failed")
    page = open_page(f"plans/{service.plan}")
    made = page.get_by_role("region", name="Changes").locator("li.delta").last
    expect(made).to_contain_text("failed")
    expect(made).to_contain_text("can be applied")
    expect(page.get_by_role("button", name="Apply the others")).to_be_visible()


_COVERED = """message => {
  const {top, bottom, left, right} = message.getBoundingClientRect();
  return [...document.querySelectorAll("main, #bar, #side")].filter(each => {
    const box = each.getBoundingClientRect();
    return getComputedStyle(each).visibility !== "hidden" && box.width && box.top < bottom - 1 && box.bottom > top + 1
      && box.left < right - 1 && box.right > left + 1;
  }).map(each => each.id);
}"""


def _covers_nothing(page: Page) -> bool:
    return page.locator("#announcer").evaluate(_COVERED) == []


def test_a_message_covers_no_button(open_page: OpenPage, service: Service) -> None:
    for width in (1200, 390):
        page = open_page(f"plans/{service.plan}")
        page.set_viewport_size({"width": width, "height": 500})
        page.get_by_role("button", name="Reject").click()
        expect(page.locator("#announcer")).to_contain_text("needs a comment")
        # The side bar of a narrow page slides out of it.
        wait_until(partial(_covers_nothing, page), "the message covers nothing")


def test_what_could_not_be_read_of_the_tree_is_read_again(open_page: OpenPage, service: Service) -> None:
    page = open_page("runs")
    source = page.get_by_role("treeitem", name="lake")
    expect(source).to_be_visible()
    refused = "**/api/v1/tree?path=lake&*"
    # A response that is not understood: the browser reports no error of its own.
    page.route(refused, lambda route: route.fulfill(body="[]", content_type="application/json"))
    source.locator("svg").first.click()
    tree = page.get_by_role("tree")
    expect(tree).to_contain_text("could not be read")
    page.unroute(refused)
    expect(tree.get_by_role("treeitem", name="sales")).to_be_visible(timeout=30_000)  # with the next event of the stream
    expect(tree).not_to_contain_text("could not be read")


def test_the_steps_to_a_plan_are_whole_beside_the_search(open_page: OpenPage, service: Service) -> None:
    for width in (1200, 1280, 1600):
        page = open_page(f"plans/{service.plan}")
        page.set_viewport_size({"width": width, "height": 800})
        steps = page.get_by_role("navigation", name="Breadcrumb")
        expect(steps).to_contain_text(service.plan[:8])
        assert (
            steps.evaluate("steps => [steps, ...steps.children].filter(each => each.scrollWidth > each.clientWidth + 1).length")
            == 0
        )


def test_a_shortened_digest_is_found_among_any_number_of_plans(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        row = dict(connection.execute(select(t.plan)).mappings().one())
        later = {**row, "state": "outdated", "created_at": row["created_at"] + 60}
        connection.execute(t.plan.insert(), [{**later, "digest": f"{number:03x}{'5' * 61}"} for number in range(201)])
    page = open_page(f"plans/{service.plan[:12]}")
    expect(page.get_by_role("heading", level=1, name="Plan for nightly")).to_be_visible()


def test_a_beginning_of_several_digests_says_so(service: Service, browser: Browser) -> None:
    with service.index.write() as connection:
        row = dict(connection.execute(select(t.plan)).mappings().one())
        connection.execute(t.plan.insert(), [{**row, "digest": service.plan[:12] + "5" * 52}])
    context = browser.new_context(base_url=service.url)
    page = context.new_page()
    page.goto(f"/ui/plans/{service.plan[:12]}")
    expect(page.get_by_role("alert")).to_contain_text("Several plans have a digest that begins with")
    context.close()


def test_an_application_of_somebody_else_is_shown_until_it_ends(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        queued = requests.queue_request(connection, "apply", {"plans": [service.plan]}, actor="ann")
        requests.set_request_state(connection, queued.id, requests.RUNNING, run_id=service.run.id)
    page = open_page(f"plans/{service.plan}")
    application = page.get_by_role("region", name="Application")
    expect(application).to_contain_text("requested by ann")
    expect(application.get_by_role("link", name="Follow the run")).to_be_visible()
    expect(page.get_by_role("button", name="Apply")).to_have_count(0)
    runs.finish_run(service.index, service.run, "ok", summary={})
    expect(page.get_by_role("region", name="Result")).to_contain_text("Open the run")
    expect(page.get_by_role("button", name="Apply the others")).to_be_visible()


def test_the_sync_that_applies_a_plan_is_shown_when_it_begins(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        queued = requests.queue_request(connection, "sync", {"mirrors": ["nightly"]}, actor="schedule")
        requests.set_request_state(connection, queued.id, requests.RUNNING, run_id=service.run.id)
    page = open_page(f"plans/{service.plan}")
    expect(page.get_by_role("button", name="Apply the others")).to_be_visible()  # the sync crawls, and may make another plan
    stage = (service.index, service.run.id, "apply", "nightly")
    run_stages.start_stage(*stage, plan=service.plan)
    application = page.get_by_role("region", name="Application")
    expect(application).to_contain_text("by a sync, requested by schedule", timeout=30_000)
    expect(application.get_by_role("link", name="Follow the run")).to_be_visible()
    expect(page.get_by_role("button", name="Apply")).to_have_count(0)
    run_stages.finish_stage(*stage, state="ok", detail="1 done", calls=None, errors=None)
    runs.finish_run(service.index, service.run, "ok", summary={})
    expect(page.get_by_role("region", name="Result")).to_contain_text("Open the run", timeout=30_000)
    expect(page.get_by_role("button", name="Apply the others")).to_be_visible()


def test_a_second_application_is_refused_and_the_first_is_shown(browser: Browser, service: Service) -> None:
    page = browser.new_page(base_url=service.url)

    def overtake(route: Route) -> None:
        with service.index.write() as connection:
            requests.queue_request(connection, "apply", {"plans": [service.plan]}, actor="ann")
        route.continue_()

    page.route("**/apply", overtake)
    page.goto(f"/ui/plans/{service.plan}")
    page.get_by_role("button", name="Apply the others").click()
    expect(page.locator("#announcer")).to_contain_text("ann has requested the application of the plan")
    expect(page.get_by_role("region", name="Application")).to_contain_text("requested by ann")
    page.close()
