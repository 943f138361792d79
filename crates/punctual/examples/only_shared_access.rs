//! A resource that all users only read is declared with `&`, and needs no lock.
//!
//! `key` raises no level, so `bar` preempts `foo` at the spawn, while `foo` is using it too. The
//! value has to be `Sync`; it may have interior mutability, here an atomic counter.

#[punctual::app]
mod app {
    use std::sync::atomic::{AtomicU32, Ordering};

    #[shared]
    struct Shared {
        key: u32,
        uses: AtomicU32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn().unwrap();
        (Shared { key: 0xdead_beef, uses: AtomicU32::new(0) }, Local {})
    }

    #[task(priority = 1, shared = [&key, &uses])]
    fn foo(cx: foo::Context) {
        let key: &u32 = cx.shared.key;
        cx.shared.uses.fetch_add(1, Ordering::Relaxed);
        println!("foo uses {key:#x}");
        bar::spawn().unwrap();
        println!("foo still uses {key:#x}");
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [&key, &uses])]
    fn bar(cx: bar::Context) {
        cx.shared.uses.fetch_add(1, Ordering::Relaxed);
        println!("bar uses {:#x}", cx.shared.key);
    }

    #[shutdown(shared = [uses])]
    fn shutdown(cx: shutdown::Context) {
        println!("used {} times", cx.shared.uses.get_mut());
    }
}
