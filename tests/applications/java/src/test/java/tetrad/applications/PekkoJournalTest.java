// SPDX-License-Identifier: Apache-2.0
package tetrad.applications;

import org.apache.pekko.persistence.CapabilityFlag;
import org.apache.pekko.persistence.japi.journal.JavaJournalSpec;
import org.junit.runner.RunWith;
import org.scalatestplus.junit.JUnitRunner;

/** Pekko's compatibility kit of journals: events by logged batches, read by slices of partitions. */
@RunWith(JUnitRunner.class)
public class PekkoJournalTest extends JavaJournalSpec {
  public PekkoJournalTest() {
    super(PekkoConfig.of("pekko_journal"));
  }

  @Override
  public CapabilityFlag supportsRejectingNonSerializableObjects() {
    return CapabilityFlag.off();  // the plugin says so itself
  }

  @Override
  public CapabilityFlag supportsSerialization() {
    return CapabilityFlag.on();
  }
}
