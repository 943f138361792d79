//! The live view on a terminal: draws it, waits for keys and restores the terminal.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::Top;
use super::screen::Screen;
use super::view;

/// Keys and signals are answered within this time.
const TICK: Duration = Duration::from_millis(100);

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
    // A panic restores the terminal as well.
    let mut terminal = ratatui::try_init().map_err(unusable)?;
    let shown = show(&mut screen, &mut terminal, arguments, &ends);
    let restored = ratatui::try_restore();
    shown.and(restored).map_err(unusable)
}

fn show(
    screen: &mut Screen,
    terminal: &mut DefaultTerminal,
    arguments: &Top,
    ends: &AtomicBool,
) -> io::Result<()> {
    let mut next = Instant::now();
    let mut looks = 0;
    // Before the terminal can be gone. Keys come from /dev/tty if standard input is something else.
    let is_input = io::stdin().is_terminal();
    while !screen.is_over && !ends.load(Ordering::Relaxed) {
        if Instant::now() >= next {
            if arguments.count.is_some_and(|count| looks >= count) {
                break;
            }
            screen.refresh_values();
            looks += 1;
            next = (next + arguments.every).max(Instant::now());
        }
        screen.step();
        terminal.draw(|frame| view::draw(screen, frame))?;
        let left = next.saturating_duration_since(Instant::now());
        let pause = left.min(TICK);
        if is_input && !is_there(pause)? {
            break;
        }
        if event::poll(if is_input { Duration::ZERO } else { pause })?
            && let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
        {
            screen.key(key);
        }
    }
    Ok(())
}

/// Waits for input for at most `pause`; returns whether the terminal still exists. Without it,
/// crossterm would read forever.
fn is_there(pause: Duration) -> io::Result<bool> {
    let pause = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) as _ };
    let stdin = io::stdin();
    let mut input = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut input, Some(&pause)) {
        // A signal, or the terminal has another size.
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(!input[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)),
    }
}
