//! The live view on a terminal: draws it, waits for keys and restores the terminal.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::Top;
use super::canvas::Canvas;
use super::keys;
use super::screen::Screen;
use super::view;

/// Keys and signals are answered within this time.
const TICK: Duration = Duration::from_millis(100);

/// Switches to the alternate screen, hides the cursor and does not wrap lines.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Shows the view until the user quits.
///
/// # Errors
/// Returns an error if the terminal cannot be used.
pub(crate) fn run(arguments: &Top) -> Result<(), String> {
    let unusable =
        |error: io::Error| format!("the terminal: {error}; print tables with `punctual top | cat`");
    let ends = Arc::new(AtomicBool::new(false));
    // Not SIGHUP: without a terminal there is nothing to restore.
    for signal in [SIGINT, SIGTERM] {
        // The second one ends the process in any state.
        let by_now = signal_hook::flag::register_conditional_default(signal, Arc::clone(&ends));
        by_now.and_then(|_| signal_hook::flag::register(signal, Arc::clone(&ends))).map_err(unusable)?;
    }
    let mut screen = Screen::new(arguments);
    let mut terminal = Terminal::open().map_err(unusable)?;
    let shown = show(&mut screen, &mut terminal, arguments, &ends);
    shown.and(terminal.close()).map_err(unusable)
}

fn show(screen: &mut Screen, terminal: &mut Terminal, arguments: &Top, ends: &AtomicBool) -> io::Result<()> {
    let mut next = Instant::now();
    let mut updates = 0;
    while !screen.is_over && !ends.load(Ordering::Relaxed) {
        if Instant::now() >= next {
            if arguments.count.is_some_and(|count| updates >= count) {
                break;
            }
            screen.refresh_values();
            updates += 1;
            next = (next + arguments.every).max(Instant::now());
        }
        screen.step();
        terminal.draw(screen)?;
        let left = next.saturating_duration_since(Instant::now());
        match terminal.keys(left.min(TICK))? {
            Some(keys) => keys.into_iter().for_each(|key| screen.key(key)),
            None => break,
        }
    }
    Ok(())
}

/// A terminal in raw mode that shows another screen. [`close`](Self::close) restores it, and so
/// does a panic before it prints its message.
struct Terminal {
    input: File,
    before: Termios,
    /// Bytes of an incomplete key.
    pending: Vec<u8>,
    /// Contents of the screen, with the position of each line.
    shown: String,
}

impl Terminal {
    fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        // If standard input is something else, the keys come from the controlling terminal.
        let input = match stdin.is_terminal() {
            true => File::from(stdin.as_fd().try_clone_to_owned()?),
            false => File::open("/dev/tty")?,
        };
        let before = tcgetattr(&input)?;
        let (hook_input, hook_before) = (input.try_clone()?, before.clone());
        let next = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let _ = restore(&hook_input, &hook_before);
            next(info);
        }));
        let mut raw = before.clone();
        raw.make_raw();
        let terminal = Self { input, before, pending: Vec::new(), shown: String::new() };
        tcsetattr(&terminal.input, OptionalActions::Now, &raw)?;
        write(ENTER).inspect_err(|_| drop(restore(&terminal.input, &terminal.before)))?;
        Ok(terminal)
    }

    fn close(self) -> io::Result<()> {
        restore(&self.input, &self.before)
    }

    /// Draws the view, unless it is the one that is shown.
    fn draw(&mut self, screen: &Screen) -> io::Result<()> {
        let size = tcgetwinsize(io::stdout())?;
        let mut canvas = Canvas::new(size.ws_col.into(), size.ws_row.into());
        view::draw(screen, &mut canvas);
        let new = canvas.encode();
        if self.shown != new {
            write(&new)?;
            self.shown = new;
        }
        Ok(())
    }

    /// Waits for keys for at most `pause`; `None` if the terminal has gone.
    fn keys(&mut self, pause: Duration) -> io::Result<Option<Vec<keys::Key>>> {
        let pause = Timespec::try_from(pause).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
        match poll(&mut fds, Some(&pause)) {
            Err(rustix::io::Errno::INTR) => return Ok(Some(Vec::new())),
            Err(error) => return Err(error.into()),
            // Nothing follows what may be the beginning of a sequence.
            Ok(0) => return Ok(Some(keys::take(&mut self.pending, true))),
            Ok(_) => {}
        }
        if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Ok(None);
        }
        let mut bytes = [0; 256];
        let count = self.input.read(&mut bytes)?;
        self.pending.extend_from_slice(&bytes[..count]);
        Ok((count > 0).then(|| keys::take(&mut self.pending, false)))
    }
}

fn restore(input: &File, before: &Termios) -> io::Result<()> {
    let written = write(LEAVE);
    tcsetattr(input, OptionalActions::Now, before)?;
    written
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
