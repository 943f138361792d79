//! Packets steered to real-time CPUs (RPS), and sent from them (XPS).

use super::*;

pub(super) const CHECK: Check = Check { name: "network", examines: "packet steering", run };

fn run(scene: &Scene, report: &mut Report) {
    let tree = &scene.machine.tree;
    let mut steered = Vec::new();
    for device in tree.list("/sys/class/net") {
        for queue in tree
            .list(&format!("/sys/class/net/{device}/queues"))
            .into_iter()
            .filter(|queue| queue.starts_with("rx-"))
        {
            let path = format!("/sys/class/net/{device}/queues/{queue}/rps_cpus");
            let Some(mask) = tree.text(&path) else { continue };
            let set = Cpus::of_mask(&mask);
            if set.meets(&scene.cpus) {
                steered.push((device.clone(), path, set.without(&scene.cpus).mask()));
            }
        }
    }
    report.value(format!("{} steered here", format_counted(steered.len() as u64, "queue")));
    if let Some((_, path, mask)) = steered.first() {
        let mut devices: Vec<&str> = steered.iter().map(|(device, ..)| device.as_str()).collect();
        devices.dedup();
        report.add(
            Finding::new(Severity::Medium, format!("packets of {} are handled on {}", devices.join(", "), scene.cpus.named()))
                .why("Receive packet steering (RPS) interrupts these CPUs to handle packets that arrived elsewhere.")
                .costs(Cost::typical(50_000, "for a burst of packets"))
                .set(
                    format!("echo {mask} > {}   # and so on", quoted(path)),
                    steered.iter().map(|(_, path, mask)| Change::file(path, mask)).collect(),
                ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_packet_steering_to_real_time_cpus() {
        let path = "/sys/class/net/eth0/queues/rx-0/rps_cpus";
        assert_eq!(fixed(CHECK, &[(path, "00000000,0000000f")]), [(path, "7")]);
        assert_eq!(found(CHECK, &[(path, "7")]), NOTHING);
        let hostile = "/sys/class/net/$(reboot)/queues/rx-0/rps_cpus";
        assert!(
            text(CHECK, &[(hostile, "f")])
                .contains("echo 7 > '/sys/class/net/$(reboot)/queues/rx-0/rps_cpus'")
        );
    }
}
