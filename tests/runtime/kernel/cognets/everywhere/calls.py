"""Every verb as it should be called, and as it shouldn't: expressions, and what is said to them."""

GOOD = {
    "output": "kernel.output('cognet:output:text', {'channel': 'a', 'content': 'x'})",
    "run": "kernel.run('1 + 1')",
    "scope": "kernel.scope()",
    "emit": "kernel.emit('cognet:log:info', {'message': 'x'})",
    "store.session.get": "list(kernel.store.session.get())",
    "store.get": "kernel.store.get('checkpoint')",
    "store.set": "kernel.store.set('checkpoint', {'a': 1})",
    "knowledge.write": "kernel.knowledge.write('kept.md', 'text')",
    "knowledge.list": "kernel.knowledge.list()",
    "knowledge.read": "kernel.knowledge.read('kept.md')",
    "knowledge.remove": "kernel.knowledge.remove('absent.md')",
    "base": "kernel.base()",
    "fault": "kernel.fault(code='A', message='b')",
    "engine": "kernel.engine('main')",
    "engine.has": "kernel.engine.has('main')",
    "stream": "whole(handles['main'].stream(words))",
    "request": "handles['main'].request(words)",
    "count": "handles['main'].count(words)",
    "transform": "handles['eyes'].transform({'seen': 1})",
    "open": "opened(handles['ears'])",
    "wake": "kernel.wake()",
    "clock": "kernel.clock()",
    "every": "every(3600, kernel.clock).stop()",
    "phase": "phase('a').__aenter__()",
    "system": "system('a').__aenter__()",
}
"""By the verb's name on the page."""

C = "CALL_INVALID"
I = "ENTRY_INVALID"  # noqa: E741 (short, for a table)
U = "ENTRY_TYPE_UNKNOWN"
L = "ENTRY_TOO_LARGE"
E = "KNOWLEDGE_ESCAPE"
R = "ENGINE_REQUEST_INVALID"
TEXT = "'cognet:output:text'"
ODD = "object()", "2**70", "-2**70", "'\\ud800'", "[r]", "deep"
"""What no message can carry: an object, whole numbers of more than 64 bits, half a character, a circle, a tower."""
UNPLAIN = *ODD, "{1, 2}", "nan", "inf", "{1: 2}"
"""What a message would carry as something else."""

BAD: list[tuple[str, str]] = [
    *((f"kernel.output({type_}, {{'channel': 'a', 'content': 'x'}})", C) for type_ in ("None", "5", "b'x'", "['x']")),
    *(
        (f"kernel.output({type_}, {{'channel': 'a', 'content': 'x'}})", U)
        for type_ in (
            "'cognet:stimulus:text'",
            "'cognet:output:smell'",
            "'cognet:output:'",
            "'cognet:action:python'",
            "'axon:system:message'",
            "'axon:interrupt'",
            "'axon:agent:settled'",
            "'kernel:boot'",
            "'x' * 1_000_000",
            "''",
        )
    ),
    *(
        (f"kernel.output({TEXT}, {data})", I)
        for data in (
            "None",
            "5",
            "'x'",
            "[]",
            "{}",
            "{'channel': 'a'}",
            "{'content': 'x'}",
            "{'channel': 5, 'content': 'x'}",
            "{'channel': '', 'content': 'x'}",
            "{'channel': 'a/b c', 'content': 'x'}",
            "{'channel': 'x' * 10_000, 'content': 'x'}",
            "{'channel': 'a', 'content': 5}",
            "{'channel': 'a', 'content': b'x'}",
            "{'channel': 'a', 'content': 'x', 'more': 1}",
            "{'channel': 'a', 'content': 'x', 5: 1}",
            "{'channel': 'a', 'content': 'x', 'chunk': {}}",
            "{'channel': 'a', 'content': 'x', 'chunk': {'of': 'm', 'final': 'yes'}}",
        )
    ),
    *((f"kernel.output({TEXT}, {{'channel': 'a', 'content': {odd}}})", C) for odd in ODD),
    (f"kernel.output({TEXT}, {{'channel': 'a', 'content': {{1, 2}}}})", I),
    (f"kernel.output({TEXT}, {{'channel': 'a', 'content': 'x' * 1_000_000}})", I),
    (f"kernel.output({TEXT}, {{'channel': 'a', 'content': 'x' * 20_000_000}})", L),
    *(
        (f"kernel.output('cognet:output:field', {{'channel': 'a', 'reading': {{'value': {value}}}}})", I)
        for value in ("nan", "inf", "-inf", "{}", "None", "b'x'")
    ),
    ("kernel.output('cognet:output:audio', {'channel': 'a', 'ref': 'file:///etc/passwd'})", I),
    ("kernel.output('cognet:output:audio', {'channel': 'a', 'ref': ref, 'duration_ms': nan})", I),
    ("kernel.output('cognet:output:audio', {'channel': 'a', 'ref': ref, 'duration_ms': -1})", I),
    ("kernel.output('cognet:output:visual', {'channel': 'a', 'ref': ref, 'kind': 'x', 'width': -1, 'height': 1})", I),
    (
        "kernel.output('cognet:output:visual', {'channel': 'a', 'ref': ref, 'kind': 5, 'width': 1, 'height': 1})",
        I,
    ),
    *((f"kernel.run({code})", f"result {C}") for code in ("None", "5", "b'1'", "{}", "object()", "'\\ud800'")),
    ("kernel.run('#' * 20_000_000)", f"result {L}"),
    ("kernel.run('#' * 200_001)", f"result {C}"),
    ("kernel.run(['1'] * 65)", f"result {C}"),
    ("kernel.run([None, {}, '\\ud800'])", f"result {C}"),
    *(
        (f"kernel.emit({type_}, {{'message': 'x'}})", U)
        for type_ in (
            "None",
            "5",
            "b'cognet:log:info'",
            "''",
            "'x' * 1_000_000",
            "'cognet:log:shout'",
            "'cognet:tick:start'",
            "'cognet:load:complete'",
            "'cognet:knowledge:write'",
            "'cognet:stimulus:text'",
            "'cognet:output:text'",
            "'cognet:action:python'",
            "'axon:system:message'",
            "'kernel:boot'",
            "'sensor:gap'",
        )
    ),
    *(
        (f"kernel.emit('cognet:log:info', {data})", I)
        for data in (
            "None",
            "5",
            "[]",
            "{}",
            "{'message': 5}",
            "{'message': 'x', 'more': 1}",
            "{'message': 'x' * 9000}",
        )
    ),
    *(
        (f"kernel.emit('cognet:log:info', {{'message': 'x', 'facts': {{'a': {odd}}}}})", I)
        for odd in (*UNPLAIN, "b'x'")
    ),
    ("kernel.emit('cognet:log:info', {'message': 'x', 'facts': {'a': 'x' * 40_000}})", L),
    ("kernel.emit('cognet:phase:start', {'name': 'x', 'span': 'first'})", I),
    *((f"kernel.store.session.get(after={cursor})", C) for cursor in ("'1'", "1.5", "nan", "True", "[]", "object()")),
    *((f"kernel.store.session.get(upto={cursor})", C) for cursor in ("'1'", "1.5", "inf", "False", "{}")),
    *((f"kernel.store.get({key})", "STORE_KEY_UNDECLARED") for key in ("'other'", "None", "5", "[]", "'../x'", "''")),
    *((f"kernel.store.set({key}, {{}})", "STORE_KEY_UNDECLARED") for key in ("'other'", "None", "{}", "'x' * 100_000")),
    *(
        (f"kernel.store.set('checkpoint', {value})", "STORE_VALUE_INVALID")
        for value in ("None", "5", "'x'", "[]", "{1: 2}", "{'a': b'x'}", "{'a': {None: 1}}")
    ),
    *((f"kernel.store.set('checkpoint', {{'a': {odd}}})", "STORE_VALUE_INVALID") for odd in UNPLAIN),
    ("kernel.store.set('checkpoint', {'a': 'x' * 9_000_000})", "STORE_VALUE_INVALID"),
    ("kernel.store.set('checkpoint', {'a': 'x' * 20_000_000})", "STORE_VALUE_INVALID"),
    *((f"kernel.knowledge.list(match={match})", C) for match in ("3", "b'x'", "[]", "object()", "'\\ud800'")),
    *((f"kernel.knowledge.list(limit={limit})", C) for limit in ("-1", "1.5", "nan", "True", "'3'", "[]")),
    *((f"kernel.knowledge.{verb}" % "None", C) for verb in ("read(%s)", "write(%s, 'x')", "remove(%s)")),
    *((f"kernel.knowledge.{verb}" % "b'kept.md'", C) for verb in ("read(%s)", "write(%s, 'x')", "remove(%s)")),
    *(
        (f"kernel.knowledge.{verb}" % name, E)
        for verb in ("read(%s)", "write(%s, 'x')", "remove(%s)")
        for name in (
            "''",
            "'../x'",
            "'/etc/passwd'",
            "'a//b'",
            "'a\\0b'",
            "'.'",
            "'KEPT.md'",
            "'\\ud800'",
            "'x' * 10**7",
        )
    ),
    ("kernel.knowledge.read('absent.md')", "KNOWLEDGE_NOT_FOUND"),
    *((f"kernel.knowledge.write('kept.md', {text})", C) for text in ("None", "5", "b'x'", "[]", "'\\ud800'")),
    ("kernel.knowledge.write('kept.md', 'x' * 20_000_000)", "KNOWLEDGE_TOO_LARGE"),
    ("kernel.knowledge.write('kept.md/below', 'x')", "KNOWLEDGE_CLASH"),
    *((f"kernel.fault(code={code}, message='b')", C) for code in ("None", "5", "''", "'a b'", "'x' * 100", "b'A'")),
    *((f"kernel.fault(code='A', message={text})", C) for text in ("None", "5", "b'b'", "'\\ud800'", "[]")),
    *((f"kernel.fault(code='A', message='b', excerpt={text})", C) for text in ("5", "b'b'", "'\\ud800'", "{}")),
    *((f"kernel.engine({role})", C) for role in ("None", "5", "b'main'", "[]")),
    *((f"kernel.engine({role})", "ENGINE_ROLE_UNBOUND") for role in ("'other'", "'nose'", "''", "'x' * 1_000_000")),
    *((f"kernel.engine.has({role})", C) for role in ("None", "5", "b'main'", "[]")),
    *(
        (f"{call % messages}", R)
        for call in ("whole(main.stream(%s))", "main.request(%s)", "main.count(%s)")
        for messages in (
            "None",
            "5",
            "'hello'",
            "[]",
            "{}",
            "[5]",
            "[{'role': 'robot', 'content': 'x'}]",
            "[{'role': 'user'}]",
            "[{'role': 'user', 'content': 5}]",
            "[{'role': 'user', 'content': 'x', 'more': 1}]",
            "[{'role': 'user', 'content': 'a\\0b'}]",
            "[{'role': 'user', 'content': '\\ud800'}]",
            "[{'role': 'user', 'content': 'x' * 5_000_000}]",
            "words * 20_001",
        )
    ),
    ("main.request([{'role': 'user', 'content': 'word ' * 10_000}])", "ENGINE_CONTEXT_EXCEEDED"),
    *(
        (f"main.request(words, {option})", R)
        for option in (
            "max_tokens=0",
            "max_tokens='5'",
            "max_tokens=2**70",
            "temperature=nan",
            "temperature=inf",
            "temperature=-1",
            "seed=-1",
            "seed=1.5",
            "stop='x'",
            "stop=['']",
            "stop=['x'] * 17",
            "stop=['\\ud800']",
            "more=1",
        )
    ),
    *((f"eyes.transform({odd})", R) for odd in UNPLAIN),
    *((f"eyes({value})", R) for value in ("b'x' * 5_000_000", "{'a': [inf]}")),
    *((f"pushed(ears, {odd})", R) for odd in UNPLAIN),
    ("pushed(ears, 'x' * 5_000_000)", R),
    ("ears.open().push('x')", C),
    ("ears.open().reset()", C),
    ("ears.open().close()", C),
    *((f"every({seconds}, kernel.wake)", C) for seconds in ("0", "-1", "nan", "inf", "2**70", "'1'", "None", "True")),
    *((f"every(1, {callback})", C) for callback in ("None", "5", "'x'", "ears.open()")),
    *((f"{span}({name})", C) for span in ("phase", "system") for name in ("''", "None", "5", "b'x'", "'x' * 129")),
    *((f"wake.spawn({work})", C) for work in ("None", "5", "think", "asyncio.sleep")),
]
"""Calls that are refused, and the error: nothing of them may be left anywhere."""

EDGES = [
    "kernel.output('cognet:output:text', {'channel': 'a', 'content': ''})",
    "kernel.output('cognet:output:field', {'channel': 'a', 'reading': {'value': [0.5, -1e300]}})",
    "kernel.run([])",
    "kernel.run('')",
    "kernel.run('#' * 200_000)",
    "kernel.run(['1'] * 64)",
    "kernel.emit('cognet:log:info', {'message': '', 'facts': {'a': [1, None, {'b': 2.5}]}})",
    "kernel.store.session.get(after=2**70)",
    "kernel.store.session.get(after=-(2**70), upto=2**70)",
    "kernel.store.session.get(upto=-1)",
    "kernel.store.set('checkpoint', {})",
    "kernel.store.set('checkpoint', {'a': [1, 2.5, None, True, 'x', -(2**63), 2**64 - 1]})",
    "kernel.knowledge.list(match='', limit=2**70)",
    "kernel.knowledge.list(match='x' * 1_000_000, limit=0)",
    "kernel.knowledge.write('kept.md', '')",
    "kernel.knowledge.remove('absent.md')",
    "kernel.fault(code='A', message='', excerpt='')",
    "kernel.fault(code='A', message='b' * 20_000_000, excerpt='c' * 20_000_000)",
    "kernel.engine.has('x' * 1_000_000)",
    "main.request(words, max_tokens=10_000_000, temperature=0, seed=2**32 - 1, stop=['x'] * 16)",
    "eyes(b'bytes')",
    "every(86_400, kernel.clock).stop()",
    "phase('x' * 128)",
]
"""Calls that look odd and are fine."""

VERBS_OF_THE_LINK = {
    "output": 2,
    "settle": 1,
    "run": 1,
    "store.get": 1,
    "store.set": 2,
    "knowledge.list": 2,
    "knowledge.read": 1,
    "knowledge.write": 2,
    "knowledge.remove": 1,
    "base": 0,
    "fault": 3,
    "engine.generate": 3,
    "engine.count": 2,
    "engine.transform": 2,
    "engine.open": 2,
    "engine.push": 2,
    "engine.reset": 1,
    "engine.close": 1,
    "commit": 1,
}
"""What a brain may ask past its own checks, with how many arguments; one isn't there."""
