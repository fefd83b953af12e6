"""Templates render as transformers renders them, and hostile ones give one short reason."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Sequence

import pytest
import transformers.utils.chat_template_utils as reference

from engine.errors import TemplateFailed
from engine.helpers.records import Outcome, Refused, Rendered, Rendering, Turn
from engine.text.renderer import TemplateRenderer

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
HEADED = """{{- bos_token }}
{%- if date_string is not defined %}
    {%- set date_string = strftime_now("%d %b %Y") %}
{%- endif %}
{#- a remark #}
{%- set ns = namespace(system='', count=0) %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- set ns.system = message.content | trim %}
        {%- continue %}
    {%- endif %}
    {%- set ns.count = ns.count + 1 %}
{%- endfor %}
Today: {{ date_string }}, {{ ns.count }} turns
{% if tools is not none %}{{ tools | tojson }}{% endif %}
{% if custom_tools is defined %}{{ custom_tools }}{% endif %}
System: {{ ns.system }}
{% for message in messages if message.role != 'system' %}
    {% if loop.index > 5 %}
        {% break %}
    {% endif %}
[{{ message.role }}] {{ message.content | trim }}
{% endfor %}
{% if add_generation_prompt %}
[assistant]
{%- endif %}
"""
JSON = (
    "{{ messages | tojson }}|{{ messages[0].content | tojson(indent=2) }}|{{ {'b': '<é>', 'a': 1}"
    " | tojson(sort_keys=true) }}|{{ dict(a=1).items() | list }}|{{ '<&>' }}|{{ missing }}"
    "|{{ missing is defined }}"
)
GENERATION = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "{% endgeneration %}{% else %}[{{ m.content }}]{% endif %}\n{% endfor %}"
)
SLICES = (
    "{% for m in messages[::-1] %}{{ loop.cycle('x', 'y') }}{{ m.content.split('</think>')[-1]"
    ".lstrip('\\n') }}{{ '|' ~ m.content[:3] ~ loop.last }}{% endfor %}{% macro f(a) %}<{{ a }}>"
    "{% endmacro %}{{ f(messages | length) }}{{ messages | map(attribute='role') | join(',') }}"
)
CONVERSATIONS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("user", "What is 2 + 2?"),),
    (("system", " Answer in <French>. "), ("user", "hello\n\nthere é 🙂")),
    (("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb"), ("user", "  c  ")),
)


@pytest.fixture(scope="module")
def renderer() -> Iterator[TemplateRenderer]:
    """One child for the whole file, as one checkpoint has; its template is given anew each time."""
    found = TemplateRenderer("")
    found.render([Rendering(turns=(), generation_prompt=False)], None)
    yield found
    found.close()


def render(
    renderer: TemplateRenderer,
    source: str,
    turns: Sequence[tuple[str, str]] = (("user", "hi"),),
    *,
    generation_prompt: bool = True,
    date: str | None = "2026-11-30",
) -> Outcome:
    renderer._source = source
    rendering = Rendering(
        turns=tuple(Turn(role=role, content=text) for role, text in turns),
        generation_prompt=generation_prompt,
        variables={"bos_token": "<s>", "eos_token": "</s>"},
    )
    return renderer.render([rendering], date)[0]


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> FixedDate:
        return cls(2026, 11, 30, tzinfo=tz)


@pytest.mark.parametrize("generation_prompt", [True, False])
@pytest.mark.parametrize("source", [CHATML, HEADED, JSON, GENERATION, SLICES])
def test_a_template_renders_as_in_transformers(
    renderer: TemplateRenderer,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    generation_prompt: bool,
) -> None:
    monkeypatch.setattr(reference, "datetime", FixedDate)
    for turns in CONVERSATIONS:
        rendered = reference.render_jinja_template(
            [[{"role": role, "content": text} for role, text in turns]],
            chat_template=source,
            add_generation_prompt=generation_prompt,
            bos_token="<s>",
            eos_token="</s>",
        )
        got = render(renderer, source, turns, generation_prompt=generation_prompt)
        assert got == Rendered(text=rendered[0][0])


def test_a_template_that_walks_through_tools_renders_without_any(
    renderer: TemplateRenderer,
) -> None:
    """With no tools it sees None, as in transformers; only where that fails, an empty list."""
    walks = "{% for tool in tools %}{{ tool.name }}{% endfor %}{{ messages[0].content }}"
    assert render(renderer, walks) == Rendered(text="hi")
    asks = "{{ tools is none }} {{ tools | tojson }}"
    assert render(renderer, asks) == Rendered(text="True null")
    for never in ("{{ raise_exception('no ' ~ (tools is none)) }}", "{{ tools.a.b }}"):
        assert isinstance(render(renderer, never), Refused)
    assert render(renderer, "{{ raise_exception('no') }}") == Refused(reason="no")


def test_what_a_filter_gives_is_json_as_a_list(renderer: TemplateRenderer) -> None:
    source = "{{ messages | map(attribute='role') | tojson }}"
    assert render(renderer, source) == Rendered(text='["user"]')
    refused = render(renderer, "{{ missing | tojson }}")
    assert refused == Refused(reason="Undefined has no JSON form")


def test_the_date_is_the_one_given(renderer: TemplateRenderer) -> None:
    source = "{{ strftime_now('%Y-%m-%d %H') }}"
    assert render(renderer, source, date="2024-02-29") == Rendered(text="2024-02-29 00")
    assert render(renderer, source, date="2025-01-01T13:00:00") == Rendered(text="2025-01-01 13")
    today = Rendered(text=datetime.datetime.now().strftime("%Y-%m-%d %H"))
    assert render(renderer, source, date=None) == today
    assert isinstance(render(renderer, source, date="soon"), Refused)


HOSTILE = {
    "mro": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "globals": "{{ cycler.__init__.__globals__.os.system('true') }}",
    "lipsum": "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "format": "{{ '{0.__class__.__base__}'.format(messages) .x.y }}",
    "attribute": "{{ (messages | attr('__class__')).mro() }}",
    "namespace": "{% set n = namespace(__class__=1) %}",
    "include": "{% include '/etc/passwd' %}",
    "import": "{% import 'os' as os %}",
    "append": "{{ messages.append(1) }}",
    "update": "{{ messages[0].update({'role': 'system'}) }}",
    "range": "{% for i in range(10 ** 9) %}x{% endfor %}",
    "list": "{{ ([0] * 10 ** 10) | length }}",
    "padding": "{{ 'x' | center(10 ** 11) }}",
    "number": "{{ '%99999999999d' % 1 }}",
    "output": "{% for i in range(90000) %}{{ 'x' * 1000 }}{% endfor %}",
    "macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "recursive": "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "nesting": "{{" + "(" * 3000 + ")" * 3000 + "}}",
    "brackets": "{{" + "[" * 90000,
    "unfinished": "{% if %}",
    "surrogate": "{{ '\\ud800' }}",
    "raise": "{{ raise_exception('only\nuser   and assistant') }}",
}

# These take so long or so much that a busy machine's clock may end the child first.
HEAVY = {
    "string": "{{ 'a' * 10 ** 9 }}",
    "doubling": "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}"
    "{% endfor %}",
    "endless": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_gives_one_reason_soon(renderer: TemplateRenderer, name: str) -> None:
    begun = time.monotonic()
    try:
        outcome = render(renderer, HOSTILE[name])
    except TemplateFailed as error:
        outcome = Refused(reason=error.sentence)
    assert isinstance(outcome, Refused)
    assert 0 < len(outcome.reason) <= 300
    assert "\n" not in outcome.reason
    assert time.monotonic() - begun < 3
    assert render(renderer, CHATML) == Rendered(
        text="<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("name", HEAVY)
def test_a_heavy_template_is_stopped_and_the_next_one_renders(name: str) -> None:
    renderer = TemplateRenderer(HEAVY[name])
    assert isinstance(render(renderer, CHATML), Rendered)
    begun = time.monotonic()
    try:
        outcome = render(renderer, HEAVY[name])
    except TemplateFailed as error:
        outcome = Refused(reason=error.sentence)
    assert time.monotonic() - begun < 3
    assert isinstance(outcome, Refused)
    assert "memory" in outcome.reason or "stopped" in outcome.reason
    assert isinstance(render(renderer, CHATML), Rendered)
    renderer.close()


def test_nothing_of_one_rendering_is_left_for_the_next(renderer: TemplateRenderer) -> None:
    counting = "{% set n = namespace(x=0) %}{% set n.x = n.x + 1 %}{{ n.x }}{{ kept }}"
    first = render(renderer, counting)
    assert first == render(renderer, counting) == Rendered(text="1")
    assert render(renderer, "{{ n is defined }}") == Rendered(text="False")
