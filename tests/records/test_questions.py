"""Which questions need knowledge of the world."""

import pytest

from attnviz.records.questions import asks_for_knowledge


@pytest.mark.parametrize(
    "text",
    [
        "Who wrote Romeo and Juliet?",
        "who wrote romeo and juliet?",
        "Who painted the Mona Lisa?",
        "Who invented the telephone?",
        "Who discovered penicillin?",
        "Who was the first man on the moon?",
        "What is the capital of France?",
        "what is the capital of france?",
        "What is the boiling point of water?",
        "Which planet is the largest?",
        "What is the longest river in Africa?",
        "How many legs does a spider have?",
        "How far away is the moon?",
        "How tall is the Eiffel Tower?",
        "How old is the universe?",
        "When was the telephone invented?",
        "When did the Second World War end?",
        "When was Shakespeare born?",
        "Where is Mount Everest?",
        "In which country is the city of Toledo?",
        "How many people live in China?",
        "What is photosynthesis?",
        "What is a noun?",
        "What are prime numbers?",
        "Why is the sky blue?",
        "Why do birds sing?",
        "Do you know who wrote Hamlet?",
        "Can you tell me what the capital of France is?",
        "can you please tell me what the boiling point of water is?",
        "Do you know when the telephone was invented?",
        "Could you tell me, which planet is the largest?",
        "Does anyone know where Mount Everest is?",
        "Any idea why the sky is blue?",
        "Do you happen to know how tall the Eiffel Tower is?",
    ],
)
def test_a_question_of_knowledge_is_one(text: str) -> None:
    assert asks_for_knowledge(text)


@pytest.mark.parametrize(
    "text",
    [
        "Who ate the cake?",
        "Who is at the door?",
        "Who wrote this letter?",
        "Who wrote the letter?",
        "Who wants tea?",
        "Who built the fence?",
        "What is wrong?",
        "What is for dinner?",
        "What are you doing?",
        "What is happening?",
        "What time is it?",
        "What is the best way to the station?",
        "Which is the nearest shop?",
        "Where are my keys?",
        "Where is Anna?",
        "Where did Tom and Anna go?",
        "When did the film start?",
        "When is the next bus?",
        "How are you?",
        "How much does this cost?",
        "How many eggs are left?",
        "How long have you been here?",
        "Why is Tom late?",
        "Why did you do that?",
        "Have you seen my phone?",
        "Are you coming or not?",
        "Is the bank open?",
        "The capital of France is",
        "Anna stabbed the duke. Who was the murderer?",  # the text has the answer
        "Do you know who ate the cake?",
        "Can you tell me where the station is?",
        "Do you know what time it is?",
        "Do you know Anna?",
        "Do you know who the murderer was?",
        "Can you tell me what is for dinner?",
        "Do you know who wrote Hamlet",
        "She asked who wrote Romeo and Juliet.",
        "",
        "?",
    ],
)
def test_a_question_about_what_is_at_hand_is_none(text: str) -> None:
    assert not asks_for_knowledge(text)
