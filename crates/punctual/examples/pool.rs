//! Buffers of a pool travel in messages and are given back: no copy, and no allocation after `init`.
//!
//! The jobs of `produce` are above those of `consume` and run first. The pool has two buffers, so the third
//! finds none. Each `consume` gives its buffer back; `idle` finds both in the pool again.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    type Buffer = Box<[u8; 128]>;

    #[shared]
    struct Shared {
        pool: Vec<Buffer>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        for n in 1..=3 {
            produce::spawn(n).unwrap();
        }
        (Shared { pool: (0..2).map(|_| Box::new([0; 128])).collect() }, Local {})
    }

    #[idle(shared = [pool])]
    fn idle(mut cx: idle::Context) {
        cx.shared.pool.lock(|pool| println!("idle: {} buffers in the pool", pool.len()));
        punctual::shutdown();
    }

    #[task(priority = 2, capacity = 3, shared = [pool])]
    fn produce(mut cx: produce::Context, n: u8) {
        match cx.shared.pool.lock(Vec::pop) {
            Some(mut buffer) => {
                println!("produce {n}");
                buffer.fill(n);
                consume::spawn(buffer).expect("there are as many slots as buffers");
            }
            None => println!("produce {n}: no buffer is free"),
        }
    }

    #[task(priority = 1, capacity = 2, shared = [pool])]
    fn consume(mut cx: consume::Context, buffer: Buffer) {
        println!("consume {}", buffer[127]);
        cx.shared.pool.lock(|pool| pool.push(buffer));
    }
}
