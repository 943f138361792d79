//! An app in two halves: `control` on a CPU that Linux gave up, `ui` on Linux, beside each other and from this one source.
//!
//!     punctual isolate run --offline --cpu 3 -- CONTROL UI [HOW-IT-ENDS]
//!
//! A controller at 1 kHz lets a level follow what the user wants, and says every tenth of a second how far it is.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[punctual::app(report = "always", partitions = [control(offline, heartbeat = 8.secs()), ui])]
mod app {
    use punctual::sync::shared::Latest;
    #[cfg(target_os = "none")]
    use punctual_bare::println;

    /// Set on Linux, followed by the controller.
    #[both]
    static WANTED: Latest<f32> = Latest::new(0.0);

    /// How often the controller says how far it is.
    #[cfg(target_os = "none")]
    const SAMPLES_PER_ANSWER: u32 = 100;

    #[shared(core = control)]
    struct Shared {}

    #[local(core = control)]
    struct Local {
        wanted: punctual::sync::shared::LatestReader<'static, f32>,
    }

    #[init(core = control)]
    fn init(_: init::Context) -> (Shared, Local) {
        let wanted = WANTED.reader().expect("nobody else reads it");
        println!("control: begins on CPU {}", punctual_bare::amp::cpu());
        (Shared {}, Local { wanted })
    }

    #[task(core = control, priority = 3, period = 1.millis(), local = [wanted, level: f32 = 0.0, turn: u32 = 0])]
    fn control(cx: control::Context) {
        let wanted = cx.local.wanted.read().value;
        *cx.local.level += 0.02 * (wanted - *cx.local.level);
        *cx.local.turn += 1;
        if cx.local.turn.is_multiple_of(SAMPLES_PER_ANSWER) {
            // If the other half is behind, the next answer is newer.
            let _ = show::spawn(*cx.local.turn / SAMPLES_PER_ANSWER, *cx.local.level);
        }
    }

    /// What may go wrong, on demand.
    #[task(core = control, crosses, priority = 2)]
    fn fail(_: fail::Context, how: u8) {
        match how {
            0 => punctual::shutdown(),
            1 => panic!("as demanded"),
            3 => {
                // SAFETY: none. It is the point that nothing is there, which the MMU knows.
                let _ = unsafe { (0x7f_0000_0000 as *const u32).read_volatile() };
            }
            _ => loop {
                core::hint::spin_loop();
            },
        }
    }

    #[shutdown(core = control)]
    fn shutdown(_: shutdown::Context) {
        println!("control: safe");
    }

    #[shared(core = ui)]
    struct Shared {}

    #[local(core = ui)]
    struct Local {
        sets: punctual::sync::shared::LatestWriter<'static, f32>,
        how: String,
    }

    #[init(core = ui)]
    fn init(_: init::Context) -> (Shared, Local) {
        let sets = WANTED.writer().expect("nobody else writes it");
        (Shared {}, Local { sets, how: std::env::args().nth(1).unwrap_or_default() })
    }

    /// Sets the level, looks on, and ends in the way that the command line says.
    #[task(core = ui, crosses, priority = 1, capacity = 4, local = [sets, how])]
    fn show(cx: show::Context, answer: u32, level: f32) {
        println!("ui: {answer}: the level is {level:.2}");
        cx.local.sets.write(1.0);
        if answer < 5 {
            return;
        }
        // Twice may be too often for the other half.
        let _ = match cx.local.how.as_str() {
            "panic" => panic!("as demanded"),
            "abort" => std::process::abort(),
            "exit" => std::process::exit(7),
            "other-hangs" => fail::spawn(2),
            "other-faults" => fail::spawn(3),
            "hang" => {
                std::thread::sleep(std::time::Duration::from_secs(60));
                Ok(())
            }
            "other-panics" => fail::spawn(1),
            "other-ends" => fail::spawn(0),
            "runs" => Ok(()),
            _ => {
                punctual::shutdown();
                Ok(())
            }
        };
    }

    #[shutdown(core = ui)]
    fn shutdown(_: shutdown::Context) {
        println!("ui: ends");
    }
}
