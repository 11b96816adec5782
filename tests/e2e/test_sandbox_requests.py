# SPDX-License-Identifier: Apache-2.0
"""What clients may ask, what they are refused, and how a list is ordered, filtered and paged."""

import grpc
import pytest
from support.images import make_image
from support.sandboxes import CONFIG, DELETED, DOMAIN, connected, left_over, started

pytestmark = pytest.mark.engines("28")


@pytest.fixture
def sandboxes(make_daemon, test_user, engine, contract):
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as client:
        client.image = make_image(engine.api, "requests:1")
        yield client


def refused(contract, call, *arguments, **options):
    """The error of a call, once its details were found to say the same as the call itself."""
    with pytest.raises(grpc.RpcError) as caught:
        answer = call(*arguments, **options)
        list(answer)  # of a stream, the error comes with the first event
    error = caught.value
    trailers = {key: value for key, value in error.trailing_metadata()}
    status = contract.error_details.Status.FromString(trailers["grpc-status-details-bin"])
    assert (status.code, status.message) == (error.code().value[0], error.details())
    assert len(status.details) == 1
    assert status.details[0].type_url == "type.googleapis.com/google.rpc.ErrorInfo"
    info = contract.error_details.ErrorInfo.FromString(status.details[0].value)
    assert info.domain == DOMAIN
    return error.code().name, info.reason, dict(info.metadata), error.details()


def test_what_is_refused_is_named_and_reserves_nothing(sandboxes, contract, engine):
    def companion(name="db", **spec):
        return contract.spec.CompanionContainerSpec(name=name, image="db:1", **spec)

    probe = contract.spec.HealthcheckConfig(test=["CMD", "true"])
    hooks = {"post_start_on_primary": ["true"]}
    malformed = contract.spec.HealthcheckConfig(test=["true"])
    for fields, expected in (
        ({"optional_services": [companion(f"s{number}") for number in range(13)]}, "at most 12"),
        ({"companion_containers": [companion("a.b")]}, 'companion container "a.b": a name has 1 to 63'),
        ({"companion_containers": [companion("n" * 64)]}, "a name has 1 to 63"),
        ({"required_services": [companion()], "optional_services": [companion()]}, 'name "db"'),
        ({"required_services": [companion()], "companion_containers": [companion("DB")]}, "for DNS it is the same"),
        ({"optional_services": [companion(healthcheck=probe, **hooks)]}, "must not have post_start_on_primary"),
        ({"required_services": [companion(**hooks)]}, "must define healthcheck"),
        ({"companion_containers": [companion(**hooks)]}, "must define healthcheck"),
        ({"required_services": [companion(healthcheck=malformed)]}, 'healthcheck.test[0] "true" is invalid'),
        ({"required_services": [companion(cpu_limit="100000")]}, "required_services[db].cpu_limit"),
    ):
        code, reason, _, words = refused(contract, sandboxes.create, "reserved", sandboxes.image, **fields)
        assert (code, reason) == ("INVALID_ARGUMENT", "INVALID_ARGUMENT"), words
        assert expected in words
    for yaml, code, words in (
        (b"image: x\ncopies: [{source: /none, target: /srv}]", "INVALID_ARGUMENT",
         "copy source path is invalid: lstat /none: no such file or directory"),
        (b"image: x\nmounts: [{source: /none, target: /srv}]", "INVALID_ARGUMENT",
         "mount source path is invalid: lstat /none: no such file or directory"),
        (b"image: x\noptional_services: {db: {image: y, post_start_on_primary: [z], healthcheck: {test: [CMD, w]}}}",
         "INVALID_ARGUMENT", 'companion container "db": an optional service must not have post_start_on_primary'),
        (b"image: x\nimag: y", "INVALID_ARGUMENT", "invalid config_yaml: line 2, column 1: "),
        (b"labels: {a: b}", "INVALID_ARGUMENT", "create_spec.image is required"),
    ):
        request = contract.service.CreateSandboxRequest(sandbox_id="reserved", config_yaml=yaml)
        refusal = refused(contract, sandboxes.stub.CreateSandbox, request, timeout=10)
        assert refusal[0] == code and refusal[3].startswith(words), refusal
    assert list(sandboxes.page(include_deleted=True).sandboxes) == []
    assert left_over(engine) == []
    sandboxes.create_ready("reserved", sandboxes.image)
    sandboxes.delete_wait("reserved")


def test_every_error_carries_its_reason(sandboxes, contract):
    service = contract.service
    image = sandboxes.image
    sandboxes.create("present", image)
    nobody = {"sandbox_id": "nobody"}
    not_found = ("NOT_FOUND", "SANDBOX_NOT_FOUND", nobody, "sandbox nobody was not found")
    assert refused(contract, sandboxes.get, "nobody") == not_found
    assert refused(contract, sandboxes.delete, "nobody") == not_found
    assert refused(contract, sandboxes.subscribe, "nobody") == not_found
    assert refused(contract, sandboxes.create, "present", image) == (
        "ALREADY_EXISTS",
        "SANDBOX_ID_ALREADY_EXISTS",
        {"sandbox_id": "present"},
        "sandbox_id present already exists",
    )
    code, reason, metadata, _ = refused(contract, sandboxes.subscribe, "present", from_sequence=99)
    assert (code, reason) == ("OUT_OF_RANGE", "SANDBOX_EVENT_SEQUENCE_EXPIRED")
    assert metadata == {"sandbox_id": "present", "from_sequence": "99"}
    wrong = [
        (sandboxes.create, ("abc", image), {}, "sandbox_id must be at least 4 characters"),
        (sandboxes.create, ("-abcd", image), {}, "sandbox_id must be 4-200 characters"),
        (sandboxes.create, ("good", ""), {}, "create_spec.image is required"),
        (sandboxes.create, ("good", image), {"cpu_limit": "much"}, 'cpu_limit "much"'),
        (sandboxes.create, ("good", image), {"memory_limit": "-1"}, "memory_limit"),
        (sandboxes.create, ("good", image), {"memory_limit": "5m"}, "must be at least 6m"),
        (sandboxes.create, ("good", image), {"cpu_limit": "100000"}, "the number of CPUs of the container engine"),
        (sandboxes.create, ("good", "Not an image"), {}, "image 'Not an image'"),
        (sandboxes.create, ("good", image), {"envs": {"HOST_UID": "0"}}, "envs.HOST_UID"),
        (sandboxes.create, ("good", image), {"command": ["a", ""]}, "command[1]: empty string"),
        (sandboxes.page, (), {"page_token": "made up"}, "page_token"),
        (
            sandboxes.stub.DeleteSandboxes,
            (service.DeleteSandboxesRequest(),),
            {"timeout": 10},
            "label_selector must not be empty",
        ),
    ]
    for call, arguments, options, words in wrong:
        code, reason, _, said = refused(contract, call, *arguments, **options)
        assert (code, reason) == ("INVALID_ARGUMENT", "INVALID_ARGUMENT"), said
        assert words in said
    for method in ("CancelExec", "GetExec"):
        request = getattr(service, f"{method}Request")(exec_id="nobody")
        code, reason, metadata, said = refused(contract, getattr(sandboxes.stub, method), request)
        assert (code, reason) == ("NOT_FOUND", "EXEC_NOT_FOUND")
        assert (metadata, said) == ({"exec_id": "nobody"}, "exec nobody was not found")
    for method in ("StopSandbox", "ResumeSandbox"):
        request = getattr(service, f"{method}Request")(sandbox_id="nobody")
        code, reason, metadata, said = refused(contract, getattr(sandboxes.stub, method), request)
        assert (code, reason) == ("NOT_FOUND", "SANDBOX_NOT_FOUND")
        assert (metadata, said) == ({"sandbox_id": "nobody"}, "sandbox nobody was not found")
    sandboxes.delete_wait("present")
    assert refused(contract, sandboxes.create, "present", image)[0] == "ALREADY_EXISTS"


def test_lists_are_newest_first_filtered_and_paged(sandboxes, contract):
    # An image that no registry has: these fail, and a failed sandbox is listed like any other.
    def names(**request):
        return [handle.sandbox_id for handle in sandboxes.page(**request).sandboxes]

    for number in range(7):
        labels = {"parity": "odd" if number % 2 else "even", "all": "yes"}
        sandboxes.create(f"list-{number}", "127.0.0.1:1/nowhere:1", labels=labels)
    newest_first = [f"list-{number}" for number in reversed(range(7))]
    assert names() == newest_first
    assert names(label_selector={"parity": "odd"}) == ["list-5", "list-3", "list-1"]
    assert names(label_selector={"parity": "odd", "all": "no"}) == []
    sandboxes.delete_wait("list-6")
    assert names() == newest_first[1:]
    assert names(include_deleted=True) == newest_first
    paged, token = [], ""
    while True:
        page = sandboxes.page(include_deleted=True, page_size=3, page_token=token)
        paged.append([handle.sandbox_id for handle in page.sandboxes])
        token = page.next_page_token
        if not token:
            break
    assert paged == [newest_first[:3], newest_first[3:6], newest_first[6:]]

    selector = contract.service.DeleteSandboxesRequest(label_selector={"parity": "even"})
    answer = sandboxes.stub.DeleteSandboxes(selector, timeout=30)
    assert list(answer.deleted_sandbox_ids) == ["list-0", "list-2", "list-4"]
    assert answer.deleted_count == 3
    for name in answer.deleted_sandbox_ids:
        assert sandboxes.wait(name, DELETED)
    assert names() == ["list-5", "list-3", "list-1"]
    answer = sandboxes.stub.DeleteSandboxes(selector, timeout=30)
    assert (list(answer.deleted_sandbox_ids), answer.deleted_count) == ([], 0)


def test_a_second_delete_is_accepted_and_says_nothing(sandboxes):
    sandboxes.create_ready("twice", sandboxes.image)
    sandboxes.delete("twice")
    sandboxes.delete("twice")
    events = sandboxes.delete_wait("twice")
    sandboxes.delete("twice")
    assert len(events) == 5
    assert sandboxes.get("twice").last_event_sequence == 5
