//! Buffers of a pool travel in messages and are given back: no copy, and no allocation after
//! `init`.
//!
//! `produce` requests three buffers before it sends any away. The pool has two, so the third
//! request fails. Each `consume` gives its buffer back; the hook finds both in the pool again.

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
        produce::spawn().unwrap();
        (Shared { pool: (0..2).map(|_| Box::new([0; 128])).collect() }, Local {})
    }

    #[task(priority = 2, shared = [pool])]
    fn produce(mut cx: produce::Context) {
        for (n, buffer) in [1, 2, 3].map(|n| (n, cx.shared.pool.lock(Vec::pop))) {
            match buffer {
                Some(mut buffer) => {
                    println!("produce {n}");
                    buffer.fill(n);
                    consume::spawn(buffer).expect("there are as many slots as buffers");
                }
                None => println!("produce {n}: no buffer is free"),
            }
        }
        punctual::shutdown();
    }

    #[task(priority = 1, capacity = 2, shared = [pool])]
    fn consume(mut cx: consume::Context, buffer: Buffer) {
        println!("consume {}", buffer[127]);
        cx.shared.pool.lock(|pool| pool.push(buffer));
    }

    #[shutdown(shared = [pool])]
    fn shutdown(cx: shutdown::Context) {
        println!("{} buffers in the pool", cx.shared.pool.len());
    }
}
