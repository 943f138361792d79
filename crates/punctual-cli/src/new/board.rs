//! The boards of `punctual-bare`: the table in its manifest.

use std::iter;

/// The manifest, by a symbolic link, which packaging replaces with the file.
const MANIFEST: &str = include_str!("../../templates/bare/boards.toml");

/// A board.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Board(&'static str);

impl Board {
    /// Returns all boards, by name.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        MANIFEST.lines().filter_map(row).map(Self)
    }

    /// Returns the board of this name.
    pub(crate) fn named(name: &str) -> Self {
        Self::all().find(|board| board.0 == name).expect("the command line accepts only known boards")
    }

    /// Returns the name, which is also that of a feature of `punctual-bare`.
    pub(crate) fn name(self) -> &'static str {
        self.0
    }

    /// Returns the compiler's target.
    pub(crate) fn target(self) -> &'static str {
        self.setting("target").expect("a unit test checks every row")
    }

    /// Returns the QEMU command line for it.
    pub(crate) fn runner(self) -> String {
        let emulator = if self.target().starts_with("aarch64") { "aarch64" } else { "arm" };
        let option = |name| self.setting(name).map(|value| format!("-{name} {value}"));
        let options = iter::once(format!("qemu-system-{emulator}"));
        options.chain(["machine", "cpu"].into_iter().filter_map(option)).collect::<Vec<_>>().join(" ")
    }

    fn setting(self, key: &str) -> Option<&'static str> {
        let lines = MANIFEST.lines().skip_while(|line| row(line) != Some(self.0)).skip(1);
        let mut lines = lines.take_while(|line| !line.starts_with('['));
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
    }
}

/// Returns the board whose row of the table begins with this line.
fn row(line: &str) -> Option<&str> {
    let name = line.strip_prefix("[package.metadata.boards.")?.strip_suffix(']')?;
    // The firmware of a board is a table of its own.
    (!name.contains('.')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_board_has_a_target_and_an_emulator() {
        assert!(Board::all().count() >= 5);
        for board in Board::all() {
            assert!(board.setting("target").is_some(), "{board:?}");
            assert!(board.setting("machine").is_some(), "{board:?}");
        }
        let runner = Board::named("virt-a7").runner();
        assert_eq!(runner, "qemu-system-arm -machine virt -cpu cortex-a7");
    }
}
