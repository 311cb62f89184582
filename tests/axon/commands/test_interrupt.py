from axon.person import person


def test_it_tells_who_and_why_and_answers_with_the_seq(axon, agent, kernel):
    asked = []

    async def interrupt(by: str, reason: str) -> dict[str, int]:
        asked.append((by, reason))
        return {"seq": 7}

    kernel(interrupt=interrupt)
    ended = axon("interrupt", agent, "--reason", "wrong room")
    assert (ended.status, ended.out) == (0, "interrupted; seq 7, durable\n")
    assert asked == [(person(), "wrong room")]


def test_without_a_kernel_there_is_nothing_to_interrupt(axon, agent):
    assert axon("interrupt", agent).err.startswith("AGENT_NOT_RUNNING: ")
