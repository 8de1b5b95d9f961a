"""Text as it stands in a file: nothing is lost by reading it, and nothing moves but what is changed."""

from __future__ import annotations

import codecs
import time
from functools import cache

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ferrule.host.files.text_files import Endings, NotEditable, NotText, TextDocument, Unencodable
from ferrule.text.matching import TextEdit
from tests.requirement import requirement

ENCODINGS = (
    "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "iso8859-1", "iso8859-2", "iso8859-15", "cp1250",
    "cp1251", "cp1252", "cp1253", "cp1254", "cp1256", "koi8-r", "cp866", "mac-roman", "gbk", "gb18030", "big5",
    "cp950", "big5hkscs", "cp932", "euc_jp", "euc_kr", "cp949",
)  # fmt: skip
BOMS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}

FRENCH = "// Calcule la moyenne pondérée des élèves\nint m = calculer(données); // résultat à vérifier\n"
GERMAN = "/* Größe prüfen, dann Übertragung schließen */\nint x = 5; // Straße, Müller, fällig\n"
POLISH = "// Zażółć gęślą jaźń, proszę wprowadzić hasło\nint x = 1; // źródło błędu: nieprawidłowa wartość\n"
CZECH = "// Příliš žluťoučký kůň úpěl ďábelské ódy\nint x; // chyba při čtení souboru, zkuste to znovu později\n"
TURKISH = "// Kullanıcı girişini doğrula, şifre yanlış ise çıkış yap\nint x; // değişken güncellenmedi\n"
RUSSIAN = "// Проверка входных данных пользователя\nint x = 1; // ошибка: неверное значение параметра\n"
GREEK = "// Έλεγχος των δεδομένων εισόδου του χρήστη\nint x = 1; // σφάλμα: μη έγκυρη τιμή\n"
HEBREW = "// בדיקת נתוני הקלט של המשתמש\nint x = 1; // שגיאה: ערך לא חוקי\n"
ARABIC = "// التحقق من بيانات المستخدم\nint x = 1; // خطأ: قيمة غير صالحة\n"
CHINESE = "// 检查用户输入的数据是否正确\nint x = 1; // 错误：参数值无效，请重新输入\n"
TAIWANESE = "// 檢查使用者輸入的資料是否正確\nint x = 1; // 錯誤：參數值無效，請重新輸入\n"
JAPANESE = "// ユーザーが入力したデータを確認する\nint x = 1; // エラー：値が正しくありません\n"
KOREAN = "// 사용자가 입력한 데이터를 확인합니다\nint x = 1; // 오류: 값이 올바르지 않습니다\n"

SAMPLES = [
    *((FRENCH, encoding) for encoding in ("cp1252", "iso8859-1", "mac-roman", "cp850")),
    *((GERMAN, encoding) for encoding in ("cp1252", "iso8859-1", "cp437")),
    *((POLISH, encoding) for encoding in ("cp1250", "iso8859-2")),
    *((CZECH, encoding) for encoding in ("cp1250", "iso8859-2")),
    *((TURKISH, encoding) for encoding in ("cp1254", "iso8859-9")),
    *((RUSSIAN, encoding) for encoding in ("cp1251", "koi8-r", "cp866", "iso8859-5")),
    *((GREEK, encoding) for encoding in ("cp1253", "iso8859-7")),
    *((HEBREW, encoding) for encoding in ("cp1255", "iso8859-8")),
    *((ARABIC, encoding) for encoding in ("cp1256", "iso8859-6")),
    *((CHINESE, encoding) for encoding in ("gb2312", "gbk", "gb18030")),
    *((TAIWANESE, encoding) for encoding in ("big5", "cp950")),
    *((JAPANESE, encoding) for encoding in ("shift_jis", "cp932", "euc_jp", "iso2022_jp")),
    *((KOREAN, encoding) for encoding in ("euc_kr", "cp949", "iso2022_kr")),
    *(
        (text, encoding)
        for text in (FRENCH, RUSSIAN, GREEK, HEBREW, ARABIC, CHINESE, JAPANESE, KOREAN)
        for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32")
    ),
]


def _reason(data: bytes) -> str:
    with pytest.raises(NotText) as caught:
        TextDocument.decode(data)
    return str(caught.value)


@cache
def _alphabet(encoding: str) -> tuple[str, ...]:
    """Characters that this encoding can write and read back as they were."""
    points = (*range(1, 0x530), *range(0x530, 0xD800, 11), *range(0xF900, 0x10000, 7), 0x1F600, 0x20000)
    return tuple(
        sign for sign in map(chr, points) if sign.encode(encoding, "ignore").decode(encoding, "ignore") == sign
    )


def _held_by(encoding: str) -> st.SearchStrategy[str]:
    return st.sampled_from(_alphabet(encoding))


def _lines(encoding: str) -> st.SearchStrategy[str]:
    line = st.tuples(st.text(_held_by(encoding), max_size=8), st.sampled_from(["\n", "\r\n", "\r", ""]))
    return st.lists(line, max_size=6).map(lambda lines: "".join(text + ending for text, ending in lines))


@st.composite
def documents(draw: st.DrawFn) -> TextDocument:
    """In any encoding, as if it had been detected: whether it would be is another question."""
    encoding = draw(st.sampled_from(ENCODINGS))
    text = draw(_lines(encoding))
    bom = draw(st.sampled_from([b"", BOMS.get(encoding, b"")]))
    body = text.encode(encoding)
    assume(body.decode(encoding) == text)
    return TextDocument(text, encoding, bom, bom + body)


@st.composite
def edits_of(draw: st.DrawFn, document: TextDocument) -> list[TextEdit]:
    cuts = sorted(draw(st.lists(st.integers(0, len(document.text)), max_size=6)))
    spans = zip(cuts[::2], cuts[1::2], strict=False)
    return [TextEdit(start, end, draw(st.text(_held_by(document.encoding), max_size=5))) for start, end in spans]


# A change


@requirement("FILE-6")
@given(st.data())
def test_only_the_bytes_of_the_spans_change(data: st.DataObject) -> None:
    document = data.draw(documents())
    edits = data.draw(edits_of(document))
    try:
        spliced = document.splice(edits)
    except NotEditable:
        assert document.encoding == "big5hkscs"  # two characters with one code
        return

    wanted = document.bom
    done = 0
    for edit in edits:
        wanted += document.text[done : edit.start].encode(document.encoding) + edit.new.encode(document.encoding)
        done = edit.end
    assert spliced == wanted + document.text[done:].encode(document.encoding)


@requirement("FILE-6")
@given(st.data())
def test_a_change_and_its_inverse_give_the_same_bytes(data: st.DataObject) -> None:
    document = data.draw(documents())
    edits = data.draw(edits_of(document))
    try:
        edited = document.edit(edits)
        restored = edited.splice(_inverse(document, edits))
    except NotEditable:
        assert document.encoding == "big5hkscs"
        return

    assert restored == document.data


def _inverse(document: TextDocument, edits: list[TextEdit]) -> list[TextEdit]:
    inverse: list[TextEdit] = []
    shift = 0
    for edit in edits:
        start = edit.start + shift
        inverse.append(TextEdit(start, start + len(edit.new), document.text[edit.start : edit.end]))
        shift += len(edit.new) - (edit.end - edit.start)
    return inverse


@requirement("FILE-6")
def test_text_the_encoding_cannot_hold_is_refused_by_name() -> None:
    document = TextDocument.decode(CHINESE.encode("gbk"))

    with pytest.raises(Unencodable) as caught:
        document.splice([TextEdit(0, 0, "fine "), TextEdit(3, 3, "5 €")])

    assert str(caught.value) == (
        "the file's encoding, gbk, has no way to write € (U+20AC EURO SIGN). "
        "Use characters that it has, or convert the file to UTF-8 first."
    )
    assert (caught.value.character, caught.value.encoding) == ("€", "gbk")


@requirement("FILE-6")
def test_text_that_would_be_read_back_as_something_else_is_refused() -> None:
    document = TextDocument("テスト", "shift_jis", b"", "テスト".encode("shift_jis"))

    with pytest.raises(Unencodable) as caught:
        document.splice([TextEdit(0, 0, "\xa5")])  # Python writes the yen sign as a backslash

    assert caught.value.character == "\xa5"


@requirement("FILE-6")
def test_half_a_character_is_refused_in_any_encoding() -> None:
    with pytest.raises(Unencodable, match=r"utf-8, has no way to write \\ud800 \(U\+D800\). It is half of"):
        TextDocument.decode(b"text").splice([TextEdit(0, 0, "\ud800")])


@requirement("FILE-6")
def test_two_characters_with_one_code_are_changed_together_or_not_at_all() -> None:
    text = "\xca\u0304 x"
    document = TextDocument(text, "big5hkscs", b"", text.encode("big5hkscs"))

    with pytest.raises(NotEditable, match="characters 0 and 1 of the file share one code"):
        document.splice([TextEdit(1, 2, "")])

    assert document.splice([TextEdit(0, 2, "y")]) == b"y x"


@pytest.mark.parametrize(
    "edits", [[TextEdit(2, 1, "")], [TextEdit(0, 9, "")], [TextEdit(1, 2, ""), TextEdit(0, 1, "")]]
)
def test_spans_out_of_order_are_a_mistake_of_the_caller(edits: list[TextEdit]) -> None:
    with pytest.raises(ValueError, match="out of order or outside"):
        TextDocument.decode(b"text").splice(edits)


@requirement("FILE-6")
@pytest.mark.parametrize("encoding", ["iso2022_jp", "utf-7"])
def test_an_encoding_with_a_memory_is_read_and_not_edited(encoding: str) -> None:
    text = ("\ufeff" if encoding == "utf-7" else "") + JAPANESE
    document = TextDocument.decode(text.encode(encoding))

    with pytest.raises(NotEditable, match="Convert it to UTF-8 first, then edit"):
        document.splice([TextEdit(0, 0, "x")])

    assert (document.text, document.encoding, document.is_editable) == (text, encoding, False)


# Reading


@requirement("FILE-6")
@pytest.mark.parametrize(("text", "encoding"), SAMPLES)
def test_usual_text_is_read_in_its_encoding(text: str, encoding: str) -> None:
    data = text.encode(encoding)

    document = TextDocument.decode(data)

    assert (document.text, document.data) == (text, data)


@requirement("FILE-6")
@pytest.mark.parametrize(
    "text",
    ["naïve", "25 °C", "© 2020 Foo", "±5%", "5 µm", "§ 5 Abs. 2", "Hyvää päivää", "smørrebrød på æble", "price: 5 €",
     "\u201cquoted\u201d \u2014 dash\u2026", "don\u2019t", "¿Qué?", "coração"],
)  # fmt: skip
def test_a_few_western_letters_are_read_as_such(text: str) -> None:
    document = TextDocument.decode(text.encode("cp1252"))

    assert (document.text, document.encoding) == (text, "cp1252")


@requirement("FILE-6")
def test_a_comment_in_a_large_file_is_enough_to_tell() -> None:
    text = "int x = 1;\n" * 50_000 + RUSSIAN + "int y = 2;\n" * 50_000

    document = TextDocument.decode(text.encode("koi8-r"))

    assert (document.text, document.encoding) == (text, "koi8-r")


@requirement("FILE-6")
@given(st.one_of(st.binary(max_size=200), st.text(max_size=60).map(lambda text: text.encode("gb18030", "ignore"))))
def test_whatever_is_read_gives_the_same_bytes_back(data: bytes) -> None:
    try:
        document = TextDocument.decode(data)
    except NotText:
        return

    assert document.bom + document.text.encode(document.encoding) == document.data == data


@requirement("FILE-6")
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))), st.booleans())
def test_utf_8_is_always_read_as_utf_8(text: str, marked: bool) -> None:
    assume(not text.startswith("+/v") and "\x1b$" not in text and "coding" not in text)
    bom = codecs.BOM_UTF8 if marked or text.startswith("\ufeff") else b""
    data = bom + text.removeprefix("\ufeff").encode()

    document = TextDocument.decode(data)

    assert document == TextDocument(text.removeprefix("\ufeff"), "utf-8", bom, data)


@requirement("FILE-6")
@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        (b"#!/usr/bin/env python\n# -*- coding: latin-1 -*-\n", "iso8859-1"),
        (b'<?xml version="1.0" encoding="Shift_JIS"?>\n', "shift_jis"),
        (b'<html><meta http-equiv="Content-Type" content="text/html; charset=windows-1251">', "cp1251"),
        (b"# coding: utf-8\n", "utf-8"),
        (b"# coding: rot13\n", "utf-8"),
        (b"# coding: cp037\n", "utf-8"),
        (b"# coding: nonsense\n", "utf-8"),
        (b"x = 1\ny = 2\n# coding: latin-1\n", "utf-8"),
    ],
)
def test_what_an_ascii_file_says_of_itself_holds_for_what_is_added(head: bytes, encoding: str) -> None:
    document = TextDocument.decode(head)

    assert (document.text, document.encoding) == (head.decode(), encoding)


@requirement("FILE-6")
def test_what_a_file_says_of_itself_comes_before_any_guess() -> None:
    data = b"# coding: iso8859-2\n" + "Árvíztűrő tükörfúrógép".encode("iso8859-2")

    assert TextDocument.decode(data).text.endswith("Árvíztűrő tükörfúrógép")


@requirement("FILE-6")
@pytest.mark.parametrize("declared", ["cp932", "big5", "euc_jp", "gb2312"])
@given(st.lists(st.binary(min_size=2, max_size=2).map(lambda pair: bytes((pair[0] | 0x80, pair[1] | 0x40)))))
def test_a_sign_with_two_codes_is_never_written_back_as_the_other(declared: str, pairs: list[bytes]) -> None:
    data = f"# coding: {declared}\n".encode() + b"".join(pairs)
    try:
        document = TextDocument.decode(data)
    except NotText:
        return

    assert document.text.encode(document.encoding) == data


@requirement("FILE-6")
def test_a_decoding_that_would_lose_a_byte_does_not_count() -> None:
    because = b"\x87\x9a"  # cp932 reads this and 0x81e6 as the same sign and writes the latter

    assert because.decode("cp932").encode("cp932") != because
    assert _reason(JAPANESE.encode("cp932") + because) == "no encoding gives its bytes back unchanged"


@requirement("FILE-6")
def test_utf_8_with_a_slip_in_it_is_refused_with_the_place() -> None:
    data = f"{RUSSIAN}{RUSSIAN}".encode() + b"\n\xff\n" + RUSSIAN.encode()

    assert _reason(data) == (
        "it is UTF-8 but for stray bytes, the first in line 6 "
        f"(byte {len(RUSSIAN.encode()) * 2 + 1} is 0xff)"
    )  # fmt: skip


@requirement("FILE-6")
@pytest.mark.parametrize(
    "data",
    [
        b"ELF\0\1",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        bytes(range(256)),
        b"\x1f\x8b\x08" + bytes(range(1, 256)) * 8,
        b"one\0three\0seventeen\0",
        b"\xff\xfea\0\0\0b\0",
        b"\xef\xbb\xbfa\0b",
        b"\x01\0\x02\0\x03\0",
    ],
)
def test_binary_data_is_refused(data: bytes) -> None:
    assert _reason(data) == "it is binary"


# Facts


@pytest.mark.parametrize(
    ("data", "endings", "mixed"),
    [
        (b"", Endings(0, 0, 0), False),
        (b"a\nb\nc\r\n", Endings(2, 1, 0), True),
        (b"a\r\nb\r\nc\nd", Endings(1, 2, 0), True),
        (b"a\rb\r", Endings(0, 0, 2), False),
        (b"\r\r\n\n", Endings(1, 1, 1), True),
    ],
)
def test_line_endings_are_counted(data: bytes, endings: Endings, mixed: bool) -> None:
    document = TextDocument.decode(data)

    assert document.endings == endings
    assert endings.is_mixed == mixed


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "gbk", "utf-16-le"])
def test_many_changes_of_a_large_file_do_not_hang(encoding: str) -> None:
    text = (FRENCH if encoding == "cp1252" else CHINESE) * 12_000
    document = TextDocument(text, encoding, b"", text.encode(encoding))
    started = time.perf_counter()

    spliced = document.splice([TextEdit(500_000 + 100 * n, 500_001 + 100 * n, "x") for n in range(100)])

    assert time.perf_counter() - started < 30  # a bound on a hang, not a measure
    assert len(spliced) <= len(document.data)
