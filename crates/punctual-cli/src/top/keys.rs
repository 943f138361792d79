//! The keys that a terminal in raw mode sends.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Enter,
    Esc,
    Backspace,
    Tab,
    /// Ctrl-C.
    Interrupt,
    Char(char),
}

const ESC: u8 = 0x1b;

/// Takes the complete keys from the front of `bytes`, and ignores unknown ones. An incomplete
/// sequence remains, unless it is the `last`: then the key Esc was pressed.
pub(super) fn take(bytes: &mut Vec<u8>, last: bool) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let Some((length, key)) = first(&bytes[at..], last) else { break };
        keys.extend(key);
        at += length;
    }
    bytes.drain(..at);
    keys
}

/// Returns the length of the first key and the key, if it is known; `None` if it is incomplete.
fn first(bytes: &[u8], last: bool) -> Option<(usize, Option<Key>)> {
    let key = match bytes[0] {
        ESC => return escaped(bytes, last),
        b'\r' | b'\n' => Some(Key::Enter),
        b'\t' => Some(Key::Tab),
        0x7f | 0x08 => Some(Key::Backspace),
        0x03 => Some(Key::Interrupt),
        0..0x20 => None,
        0x20..0x7f => Some(Key::Char(bytes[0].into())),
        _ => return character(bytes, last),
    };
    Some((1, key))
}

/// Returns a key that begins with Esc. Cursor keys are `ESC [ A` or `ESC O A`, pages `ESC [ 5 ~`.
fn escaped(bytes: &[u8], last: bool) -> Option<(usize, Option<Key>)> {
    let alone = last.then_some((1, Some(Key::Esc)));
    let Some(introducer) = bytes.get(1) else { return alone };
    if !matches!(introducer, b'[' | b'O') {
        return Some((1, Some(Key::Esc)));
    }
    let Some(end) = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte)) else { return alone };
    let key = match &bytes[2..=2 + end] {
        b"A" => Some(Key::Up),
        b"B" => Some(Key::Down),
        b"5~" => Some(Key::PageUp),
        b"6~" => Some(Key::PageDown),
        _ => None,
    };
    Some((end + 3, key))
}

/// Returns a character in UTF-8.
fn character(bytes: &[u8], last: bool) -> Option<(usize, Option<Key>)> {
    let length = match bytes[0] {
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf8 => 4,
        _ => return Some((1, None)),
    };
    match bytes.get(..length).map(str::from_utf8) {
        Some(Ok(text)) => Some((length, text.chars().next().map(Key::Char))),
        Some(Err(_)) => Some((1, None)),
        None => last.then_some((1, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> (Vec<Key>, Vec<u8>) {
        let mut bytes = bytes.to_vec();
        (take(&mut bytes, false), bytes)
    }

    #[test]
    fn reads_characters_and_control_keys() {
        let (found, rest) = keys("qµ\r\t\u{7f}\u{3}\u{1}".as_bytes());
        let expected = [Key::Char('q'), Key::Char('µ'), Key::Enter, Key::Tab, Key::Backspace, Key::Interrupt];
        assert_eq!((found, rest), (expected.to_vec(), vec![]));
    }

    #[test]
    fn reads_cursor_keys_in_both_modes_and_ignores_unknown_sequences() {
        let (found, _) = keys(b"\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[1;5C\x1b[200~x");
        assert_eq!(found, [Key::Up, Key::Down, Key::PageUp, Key::PageDown, Key::Char('x')]);
    }

    #[test]
    fn waits_for_rest_of_sequence() {
        for part in [&b"\x1b"[..], b"\x1b[", b"\x1b[5", "µ".as_bytes().split_at(1).0] {
            assert_eq!(keys(part), (vec![], part.to_vec()));
        }
        let mut bytes = b"\x1b".to_vec();
        assert_eq!((take(&mut bytes, true), bytes), (vec![Key::Esc], vec![]));
        assert_eq!(keys(b"\x1bq").0, [Key::Esc, Key::Char('q')]);
    }

    #[test]
    fn consumes_all_input_at_the_end() {
        for bytes in [&b"\x1b[5"[..], b"\xff\xfe", b"\xe2\x82", b"\x1b\x1b"] {
            let mut bytes = bytes.to_vec();
            take(&mut bytes, true);
            assert!(bytes.is_empty(), "{bytes:?}");
        }
    }
}
