"""The documentation page: whole, and without a network."""

import re
from html.parser import HTMLParser

from starlette.testclient import TestClient

from evenhand_api.rest.openapi import openapi_document
from evenhand_api.rest.problems import Kind


class Page(HTMLParser):
    """What a page loads, links to and anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in {"src", "srcset", "data", "poster", "action"} or (name == "href" and tag == "link"):
                self.loads.append(value or "")
            elif name == "href":
                self.links.append(value or "")
            elif name == "id":
                self.ids.append(value or "")


def test_the_page_loads_nothing_and_runs_nothing(client: TestClient) -> None:
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    page = Page(answer.text)
    assert page.loads == []
    assert not page.tags & {"script", "link", "img", "iframe", "object"}
    assert not re.search(r"@import|url\(", answer.text)


def test_every_link_leads_to_something_on_the_service(client: TestClient) -> None:
    page = Page(client.get("/docs").text)
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        assert link.removeprefix("#") in page.ids or client.get(link).status_code == 200, link


def test_the_page_has_every_operation_model_field_and_problem(client: TestClient) -> None:
    text = client.get("/docs").text
    page = Page(text)
    document = openapi_document()
    for path, item in document["paths"].items():
        assert path in text
        operations = [operation for method, operation in item.items() if method != "parameters"]
        assert operations
        assert all(f"operation-{operation['operationId']}" in page.ids for operation in operations)
    for name, model in document["components"]["schemas"].items():
        assert f"model-{name}" in page.ids
        assert all(f">{field}</code>" in text for field in model.get("properties", {}))
    for kind in Kind:
        assert kind.type == f"/docs#problem-{kind.slug}"
        assert f"problem-{kind.slug}" in page.ids
