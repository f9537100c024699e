// SPDX-License-Identifier: Apache-2.0
package tetrad.applications;

import org.apache.pekko.persistence.japi.snapshot.JavaSnapshotStoreSpec;
import org.junit.runner.RunWith;
import org.scalatestplus.junit.JUnitRunner;

/** Pekko's compatibility kit of stores of snapshots. */
@RunWith(JUnitRunner.class)
public class PekkoSnapshotTest extends JavaSnapshotStoreSpec {
  public PekkoSnapshotTest() {
    super(PekkoConfig.of("pekko_snapshot"));
  }
}
